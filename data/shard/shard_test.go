package shard

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/philox"
)

var update = flag.Bool("update", false, "write the golden data set of the current version anew")

var tiny = data.Schema{C: 2, H: 3, W: 4, DType: safetensors.U8, Classes: []string{"a", "b", "c"}}

// pixel is value j of sample i of the data sets below.
func pixel(i, j int) byte { return byte(i*31 + j*7) }

func sample(i int) []byte {
	p := make([]byte, tiny.SampleBytes())
	for j := range p {
		p[j] = pixel(i, j)
	}
	return p
}

// write makes a data set of n training and 5 test samples in blocks of 4 and
// shards of 8.
func write(t *testing.T, dir string, n int, o Options) {
	t.Helper()
	o.Schema, o.BlockSamples, o.ShardSamples = tiny, 4, 8
	o.Preprocessing = Preprocessing{"crop": "160"}
	w, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 5 {
		split := "train"
		if i >= n {
			split = "test"
		}
		if err := w.Add(t.Context(), split, sample(i), int64(i%3)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// check reads a data set made by write.
func check(t *testing.T, dir string, n int) {
	t.Helper()
	for _, s := range []struct {
		split    string
		first, n int
	}{{"train", 0, n}, {"test", n, 5}} {
		r, err := Open(dir, s.split)
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != int64(s.n) {
			t.Fatalf("%s has %d samples, want %d", s.split, r.Len(), s.n)
		}
		var b data.Block
		i := s.first
		for k, span := range r.Layout().Spans() {
			if err := r.ReadBlock(k, &b); err != nil {
				t.Fatal(err)
			}
			for j := range span.N {
				got := b.Values[j*tiny.SampleBytes():][:tiny.SampleBytes()]
				if !bytes.Equal(got, sample(i)) || b.Labels[j] != int64(i%3) {
					t.Fatalf("%s sample %d is %v %d, want %v %d", s.split, i, got, b.Labels[j], sample(i), i%3)
				}
				i++
			}
		}
		if i-s.first != s.n {
			t.Fatalf("%s: the blocks hold %d samples, want %d", s.split, i-s.first, s.n)
		}
	}
	if err := Verify(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{1, 4, 8, 9, 21} {
		dir := filepath.Join(t.TempDir(), "deep", "er", "set")
		write(t, dir, n, Options{})
		check(t, dir, n)
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil || len(entries) != 1 {
			t.Errorf("left beside the data set: %v, %v", entries, err)
		}
	}
}

// The golden data set of each version is kept for ever. Its uncompressed
// content is compared, because compressed bytes change with the encoder.
func TestGolden(t *testing.T) {
	dir := filepath.Join("testdata", "v1")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		write(t, dir, 11, Options{})
	}
	check(t, dir, 11)
	now := filepath.Join(t.TempDir(), "now")
	write(t, now, 11, Options{})
	for _, split := range []string{"train", "test"} {
		old, err := Open(dir, split)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(now, split)
		if err != nil {
			t.Fatal(err)
		}
		if old.Digest() != r.Digest() {
			t.Errorf("%s: digest %s, the golden one is %s", split, r.Digest(), old.Digest())
		}
	}
}

// A shard is an ordinary safetensors file inside ordinary zstd.
func TestStockToolsReadIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 6, Options{})
	f, err := os.Open(filepath.Join(dir, "train", "shard-00000.safetensors.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	s, err := safetensors.Parse(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Bytes("images")
	if err != nil || !bytes.Equal(got[:24], sample(0)) || len(got) != 6*24 {
		t.Errorf("images: %d bytes, %v", len(got), err)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err == nil && !st.IsDir() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			m[strings.TrimPrefix(p, dir)] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBytesDoNotDependOnWorkers(t *testing.T) {
	one, many := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	write(t, one, 37, Options{Workers: 1})
	write(t, many, 37, Options{Workers: 2 * runtime.GOMAXPROCS(0)})
	a, b := tree(t, one), tree(t, many)
	if len(a) != len(b) {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "set")
	write(t, dir, 3, Options{})
	if _, err := Create(dir, Options{Schema: tiny}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("creating over a data set: %v, want an error that says --force", err)
	}
	before := tree(t, dir)
	w, err := Create(dir, Options{Schema: tiny, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "train", sample(0), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); len(after) != len(before) {
		t.Errorf("an aborted writer changed the data set: %d files, want %d", len(after), len(before))
	}
	write(t, dir, 9, Options{Force: true})
	check(t, dir, 9)
	if files, err := os.ReadDir(parent); err != nil || len(files) != 1 {
		t.Errorf("left beside the data set: %v, %v", files, err)
	}
	other := filepath.Join(parent, "other")
	if err := os.MkdirAll(filepath.Join(other, "precious"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(other, Options{Schema: tiny, Force: true}); err == nil || !strings.Contains(err.Error(), "never replaced") {
		t.Errorf("creating over another directory with force: %v", err)
	}
}

func TestAbandonedWritersLeaveNothing(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		end  func(w *Writer) error
		want string // of the error; "" for none
	}{
		{"abort", (*Writer).Abort, ""},
		{"no samples", func(w *Writer) error { w.index.Splits = nil; _, err := w.Commit(t.Context()); return err }, "no samples"},
		{"canceled", func(w *Writer) error { _, err := w.Commit(canceled); return err }, "canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			w, err := Create(filepath.Join(root, "a", "b", "set"), Options{Schema: tiny, ShardSamples: 1}) // so Commit has no shard to write
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Add(t.Context(), "train", sample(0), 0); err != nil {
				t.Fatal(err)
			}
			err = tt.end(w)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestBadSamplesAndPlaces(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "set"), Options{Schema: tiny})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}()
	for name, err := range map[string]error{
		"short sample": w.Add(t.Context(), "train", make([]byte, 3), 0),
		"bad label":    w.Add(t.Context(), "train", sample(0), 3),
		"bad split":    w.Add(t.Context(), "../up", sample(0), 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "set")} {
		if _, err := Create(dir, Options{Schema: tiny}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("creating at %s: %v, want an error naming it", dir, err)
		}
	}
	if _, err := Create(filepath.Join(t.TempDir(), "x"), Options{Schema: data.Schema{C: 0, H: 1, W: 1, DType: safetensors.U8}}); err == nil {
		t.Error("a schema without planes is accepted")
	}
}

// A block has as many whole samples as fit into its size, and a shard as many whole blocks
// as fit into its own; there is at least one of each.
func TestSizesOfWhatIsWritten(t *testing.T) {
	for _, tt := range []struct{ sample, block, shard int }{
		{1, 256 << 10, 48 << 20},
		{3072, 85, 192 * 85}, // 192 blocks of 255 KiB are 47.8 MiB
		{128 << 10, 2, 384},
		{128<<10 + 1, 1, 383},
		{20 << 20, 1, 2},
		{48<<20 + 1, 1, 1},
	} {
		block, shard := layoutFor(data.Schema{C: 1, H: 1, W: tt.sample, DType: safetensors.U8})
		if block != tt.block || shard != tt.shard {
			t.Errorf("samples of %d bytes: %d in a block and %d in a shard, want %d and %d", tt.sample, block, shard, tt.block, tt.shard)
		}
	}
}

// TestWhatCannotBeWrittenIsNamed: by the name it was to have, and not by its temporary's.
func TestWhatCannotBeWrittenIsNamed(t *testing.T) {
	for in, want := range map[string]string{ // what is in the way of it
		"train":                              "train: not a directory",
		"train/shard-00000.safetensors.zst/": "train/shard-00000.safetensors.zst: is a directory",
		"index.json/":                        "index.json: it is a folder, which no file may replace",
		"vocabulary.txt/":                    "vocabulary.txt: it is a folder, which no file may replace",
	} {
		dir := filepath.Join(t.TempDir(), "set")
		w, err := Create(dir, Options{Schema: textSchema})
		if err != nil {
			t.Fatal(err)
		}
		lay(t, w.Temporary(), map[string]string{in: ""})
		if err := w.Add(t.Context(), "train", bytesOf(sentence(0)), -1); err != nil {
			t.Fatal(err)
		}
		if _, err = w.Commit(t.Context()); err == nil || err.Error() != filepath.Join(dir, want) {
			t.Errorf("%s in its way: %v, want %s", in, err, filepath.Join(dir, want))
		}
	}
}

// A shard is written when it is full, and whoever adds its last sample is told if it cannot
// be: an importer need not read the rest.
func TestFullShardThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	w, err := Create(dir, Options{Schema: tiny, ShardSamples: 2})
	if err != nil {
		t.Fatal(err)
	}
	lay(t, w.Temporary(), map[string]string{"train": ""})
	first, second := w.Add(t.Context(), "train", sample(0), 0), w.Add(t.Context(), "train", sample(1), 0)
	if want := filepath.Join(dir, "train: not a directory"); first != nil || second == nil || second.Error() != want {
		t.Errorf("the first: %v, the last: %v, want %s", first, second, want)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

// A block of 85 pictures of 32×32 that compress a little, as photographs do.
func BenchmarkReadBlock(b *testing.B) {
	s := data.Schema{C: 3, H: 32, W: 32, DType: safetensors.U8}
	dir := filepath.Join(b.TempDir(), "set")
	w, err := Create(dir, Options{Schema: s})
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, s.SampleBytes())
	for i := range 850 {
		for j := range p {
			x := philox.Name{Seed: 1, Purpose: philox.Testing, Sample: uint32(i)}.Uint32(j)
			p[j] = byte(x) & 127
		}
		if err := w.Add(b.Context(), "train", p, -1); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	r, err := Open(dir, "train")
	if err != nil {
		b.Fatal(err)
	}
	var block data.Block
	b.SetBytes(85 * int64(s.SampleBytes()))
	i := 0
	for b.Loop() {
		if err := r.ReadBlock(i%10, &block); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
