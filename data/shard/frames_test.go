package shard

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

// A shard whose tensors are whole and cut into other frames than blocks is refused, before
// a block is read past the end of what its frame has.
func TestOtherFrames(t *testing.T) {
	file := filepath.Join("train", "shard-00000.safetensors.zst")
	for _, tt := range []struct {
		name string
		from int // the frame whose last bytes are the next one's, or all frames after it
		n    int // so many
		want string
	}{
		{"the first label in the header's", 0, -8, "frame 0 at offset 0: "},
		{"a label in another block's", 1, 8, "has 24 bytes, expected 32"},
		{"pixels in another block's", 3, 24, "has 72 bytes, expected 96"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			write(t, dir, 8, Options{})
			r, err := Open(dir, "train")
			if err != nil {
				t.Fatal(err)
			}
			e := r.index.Splits["train"].Shards[0]
			frames := framesOf(t, r, filepath.Join(dir, file))
			if len(frames) != 5 { // header, two blocks of labels, two of images
				t.Fatalf("%d frames", len(frames))
			}
			a, b := frames[tt.from], frames[tt.from+1]
			both := slices.Concat(a, b)
			frames[tt.from], frames[tt.from+1] = both[:len(a)-tt.n], both[len(a)-tt.n:]
			reframe(t, dir, file, frames)
			r, err = Open(dir, "train")
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }() // it was only read
			e.Bytes = r.index.Splits["train"].Shards[0].Bytes
			if _, err := r.readTable(f, e); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Sentences that are none are refused as they are read, and named, though their checksums
// are right: what wrote them was wrong.
func TestSentencesThatAreNone(t *testing.T) {
	file := filepath.Join("train", "shard-00000.safetensors.zst")
	for _, tt := range []struct {
		name         string
		frame, place int
		value        byte
		want         string
	}{
		{"ends that fall", 1, 8, 2, "sample 1 of the frame has -1 tokens, expected 3 to 7"},
		{"too short", 1, 0, 2, "sample 0 of the frame has 2 tokens, expected 3 to 7"},
		{"too long", 1, 8, 11, "sample 1 of the frame has 8 tokens, expected 3 to 7"},
		{"no begin", 3, 0, data.End, "sample 0 of the frame: a sentence without its begin or its end"},
		{"no word", 3, 4, 6, "sample 0 of the frame: token 6 within a sentence, expected 3 to 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			writeText(t, dir, 3) // of 3, 4 and 5 tokens
			r, err := Open(dir, "train")
			if err != nil {
				t.Fatal(err)
			}
			frames := framesOf(t, r, filepath.Join(dir, file)) // header, ends, labels, tokens
			frames[tt.frame][tt.place] = tt.value
			reframe(t, dir, file, frames)
			if r, err = Open(dir, "train"); err != nil {
				t.Fatal(err)
			}
			var b data.Block
			err = r.ReadBlock(0, &b)
			if _, corrupt := errors.AsType[*data.CorruptError](err); !corrupt || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a CorruptError with %q", err, tt.want)
			}
		})
	}
}

// framesOf are the frames of a shard, decoded.
func framesOf(t *testing.T, r *Reader, path string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := readSeekTable(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range table {
		raw, err := new(scratch).frame(bytes.NewReader(b), r.dec, e, nil)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, raw)
	}
	if _, err := safetensors.Parse(slices.Concat(frames...)); err != nil {
		t.Fatal(err)
	}
	return frames
}

// reframe writes a shard anew, of other frames, and its size into the index.
func reframe(t *testing.T, dir, file string, frames [][]byte) {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "other"), Options{Schema: tiny})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := w.writeFrames(t.Context(), &b, frames); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(m map[string]any) {
		train := m["splits"].(map[string]any)["train"].(map[string]any)
		train["shards"].([]any)[0].(map[string]any)["bytes"] = b.Len()
	})
}
