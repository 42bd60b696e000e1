package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ebtrain/data"
)

// edit changes index.json by way of a map and gives it a right checksum.
func edit(t *testing.T, dir string, f func(m map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, IndexName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	f(m)
	m["checksum"] = zeroSum
	if b, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(zeroSum), []byte(sum64(b)), 1)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBadDataSets(t *testing.T) {
	last := filepath.Join("train", "shard-00002.safetensors.zst")
	change := func(name string, f func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), f(b), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	edited := func(f func(m map[string]any)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { edit(t, dir, f) }
	}
	train := func(m map[string]any) map[string]any { return m["splits"].(map[string]any)["train"].(map[string]any) }
	shard2 := func(m map[string]any) map[string]any { return train(m)["shards"].([]any)[2].(map[string]any) }
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   []string // in the error of opening or of verifying
	}{
		{"index missing", remove(IndexName), []string{"index.json: missing"}},
		{"index a pipe", func(t *testing.T, dir string) {
			index := filepath.Join(dir, IndexName)
			if err := errors.Join(os.Remove(index), syscall.Mkfifo(index, 0o644)); err != nil {
				t.Fatal(err)
			}
		}, []string{"index.json is a pipe, where a file is expected"}},
		{"directory missing", remove("."), []string{"no such data set", "mkshards"}},
		{"index cut", change(IndexName, func(b []byte) []byte { return b[:100] }), []string{"index.json: offset 100"}},
		{"index checksum", change(IndexName, func(b []byte) []byte { return bytes.Replace(b, []byte(`"160"`), []byte(`"140"`), 1) }), []string{"index.json: checksum is"}},
		{"index of another kind", edited(func(m map[string]any) { m["format"] = "mds" }), []string{`format is "mds"`}},
		{"major version", edited(func(m map[string]any) { m["version"] = map[string]int{"major": 2} }), []string{"format version 2.0"}},
		{"required feature", edited(func(m map[string]any) { m["required_features"] = []string{"left-predictor"} }), []string{`"left-predictor"`}},
		{"wrong type", edited(func(m map[string]any) { m["block_samples"] = "x" }), []string{"field block_samples is a string"}},
		{"block_samples 0", edited(func(m map[string]any) { m["block_samples"] = 0 }), []string{"block_samples is 0"}},
		{"no splits", edited(func(m map[string]any) { m["splits"] = map[string]any{} }), []string{"no splits"}},
		{"empty split", edited(func(m map[string]any) { m["splits"].(map[string]any)["train"] = map[string]any{"samples": 0} }), []string{"split train: 0 samples"}},
		{"count", edited(func(m map[string]any) { train(m)["samples"] = 99 }), []string{"split train: 99 samples"}},
		{"impossible count", edited(func(m map[string]any) { train(m)["samples"], shard2(m)["samples"] = 1<<31+16, 1<<31 }), []string{"cannot hold 2147483648 samples"}},
		{"a count that no frames could have", edited(func(m map[string]any) {
			train(m)["samples"], shard2(m)["samples"], shard2(m)["raw_bytes"] = 1<<31+16, 1<<31, 1<<40
		}), []string{"cannot hold 2147483648 samples"}},
		{"impossible size", edited(func(m map[string]any) { shard2(m)["raw_bytes"] = 100 }), []string{"100 raw, cannot hold 5 samples"}},
		{"path outside", edited(func(m map[string]any) { shard2(m)["file"] = "../x" }), []string{`"../x" is not a path inside`}},
		{"schema", edited(func(m map[string]any) { m["schema"].(map[string]any)["shape"] = []int{0, 1, 1} }), []string{"schema: C is 0"}},
		{"other schema", edited(func(m map[string]any) { m["schema"].(map[string]any)["shape"] = []int{2, 4, 3} }), []string{"shard-00000", "tensor images is U8[8 2 3 4], expected U8[8 2 4 3]"}},
		{"shard missing", remove(last), []string{last, "missing"}},
		{"torn last shard", change(last, func(b []byte) []byte { return b[:len(b)-20] }), []string{last, "ends at offset", "torn"}},
		{"longer shard", change(last, func(b []byte) []byte { return append(b, 0) }), []string{last, "expected"}},
		{"no footer", change(last, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), []string{last, "samples 16 to 20", "no seek table"}},
		{"flipped byte in a frame", change(last, func(b []byte) []byte { b[len(b)-150] ^= 4; return b }), []string{last, "frame", "offset", "samples", "damaged"}},
		{"flipped byte in the seek table", change(last, func(b []byte) []byte { b[len(b)-9-3] ^= 4; return b }), []string{last, "frame 4", "checksum"}},
		{"sizes in the seek table", change(last, func(b []byte) []byte { b[len(b)-9-12] ^= 4; return b }), []string{last, "seek table at offset", "lists"}},
		{"header frame", change(last, func(b []byte) []byte { b[9] ^= 0xff; return b }), []string{last, "frame 0 at offset 0"}},
		{"another file of the same size", edited(func(m map[string]any) { shard2(m)["xxh64"] = strings.Repeat("0", 16) }), []string{last, "xxh64"}},
		{"wrong sha256", edited(func(m map[string]any) { shard2(m)["sha256"].(map[string]any)["images"] = strings.Repeat("0", 64) }), []string{last, "sha256 of images"}},
		{"label out of range", edited(func(m map[string]any) { m["schema"].(map[string]any)["classes"] = []string{"a"} }), []string{"label 1, expected 0 to 0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			write(t, dir, 21, Options{})
			tt.damage(t, dir)
			err := Verify(t.Context(), dir, nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want one with %q", err, w)
				}
			}
			for line := range strings.SplitSeq(err.Error(), "\n") { // one for each bad shard
				if !strings.HasPrefix(line, dir) {
					t.Errorf("the line %q does not begin with the file", line)
				}
			}
		})
	}
}

// A shard that is torn is found when its split is opened, before anything is done with
// those before it.
func TestOpenFindsTornShards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 21, Options{})
	last := filepath.Join(dir, "train", "shard-00002.safetensors.zst")
	if err := os.Truncate(last, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "train"); err == nil || !strings.Contains(err.Error(), last+": ends at offset 100, ") {
		t.Errorf("error %v, want one that names %s", err, last)
	}
	if _, err := Open(dir, "test"); err != nil { // which is whole
		t.Error(err)
	}
}

// An index that lies costs no memory: only a file that is there is believed.
func TestVerifyBelievesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 21, Options{})
	edit(t, dir, func(m map[string]any) {
		const samples = 1<<32 - 1
		m["block_samples"] = 1
		split := m["splits"].(map[string]any)["train"].(map[string]any)
		shard := split["shards"].([]any)[0].(map[string]any)
		shard["samples"], shard["bytes"], shard["raw_bytes"] = samples, 24*samples, samples*24
		split["samples"], split["shards"] = samples, []any{shard}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Verify(t.Context(), dir, nil)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "shard-00000.safetensors.zst: ends at offset ") {
		t.Errorf("error %v, want one that the first shard ends too soon", err)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 64<<20 {
		t.Errorf("%d MiB were allocated for blocks that no file has", grew>>20)
	}
}

// Unknown fields and a later minor version are read.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 9, Options{})
	edit(t, dir, func(m map[string]any) {
		m["version"] = map[string]int{"major": Major, "minor": 7}
		m["future"] = 1
	})
	check(t, dir, 9)
}

// Every single flipped byte of a shard is noticed by Verify.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 3, Options{})
	path := filepath.Join(dir, "train", "shard-00000.safetensors.zst")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x10
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Verify(t.Context(), dir, nil); err == nil {
			t.Errorf("flipping byte %d of %d goes unnoticed", i, len(good))
		}
	}
}

func TestCorruptErrorIsTyped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 21, Options{})
	path := filepath.Join(dir, "train", "shard-00001.safetensors.zst")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	var block data.Block
	if err := r.ReadBlock(3, &block); err != nil {
		t.Fatal(err)
	}
	frame := r.tables[1].frames[4] // images of samples 12 to 15
	b[frame.CompressedOffset+8] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	c, ok := errors.AsType[*data.CorruptError](r.ReadBlock(3, &block))
	if !ok || c.First != 12 || c.N != 4 || c.Frame != 4 || c.Offset != int64(frame.CompressedOffset) || c.File != path {
		t.Errorf("got %+v", c)
	}
	if err := r.ReadBlock(2, &block); err != nil {
		t.Errorf("a good block of the same shard: %v", err)
	}
	if err := r.ReadBlock(99, &block); err == nil {
		t.Error("a block out of range gives no error")
	}
}

func FuzzIndex(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "v1", IndexName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":"ebtrain-shards","version":{"major":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		// With its checksum made right, so that what lies behind is reached.
		var head struct{ Checksum string }
		if json.Unmarshal(b, &head) == nil && len(head.Checksum) == len(zeroSum) {
			b = bytes.Replace(b, []byte(head.Checksum), []byte(zeroSum), 1)
			b = bytes.Replace(b, []byte(zeroSum), []byte(sum64(b)), 1)
		}
		x, err := decodeIndex(b)
		if err != nil {
			return
		}
		for name := range x.Splits {
			if _, err := newReader("d", name, x); err != nil {
				t.Logf("refused: %v", err)
			}
		}
	})
}

func FuzzSeekTable(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "v1", "train", "shard-00001.safetensors.zst"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[len(b)-60:])
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := readSeekTable(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, e := range frames {
			if e.CompressedOffset+uint64(e.CompressedSize) > uint64(len(b)) {
				t.Fatalf("frame %+v lies outside the %d bytes", e, len(b))
			}
		}
	})
}

// A block that does not decode once is read again before it is given up.
func TestBlockIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 9, Options{})
	r, err := Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	var want, got data.Block
	if err := r.ReadBlock(0, &want); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(r.path(0))
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, b, 0o644); err != nil {
		t.Fatal(err)
	}
	for failures, ok := range map[int]bool{0: true, 1: true, 2: false} {
		reads := 0
		r.open = func(path string) (file, error) {
			if reads++; reads <= failures {
				path = bad
			}
			return os.Open(path)
		}
		err := r.ReadBlock(0, &got)
		if (err == nil) != ok || ok && !bytes.Equal(got.Values, want.Values) {
			t.Errorf("%d failures: %v", failures, err)
		}
	}
}

// A shard whose seek table is damaged is looked at twice, not for each of its blocks.
func TestLostTableIsNotReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 21, Options{})
	path := filepath.Join(dir, "train", "shard-00000.safetensors.zst")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-20] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	r.open = func(p string) (file, error) {
		if p == path {
			opened++
		}
		return os.Open(p)
	}
	var block data.Block
	lost := 0
	for i, s := range r.Layout().Spans() {
		err := r.ReadBlock(i, &block)
		c, corrupt := errors.AsType[*data.CorruptError](err)
		if s.Shard != 0 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		lost++
		if !corrupt || c.Frame != -1 || c.File != path || c.First != 0 || c.N != r.Layout().Shards[0] {
			t.Errorf("block %d: %v", i, err)
		}
	}
	if lost < 2 || opened != 2 {
		t.Errorf("%d blocks of the shard, which was opened %d times; want several and 2", lost, opened)
	}
}
