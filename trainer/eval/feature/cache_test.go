package feature

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"ebtrain/trainer/eval/quality"
)

// Whatever byte of kept features is damaged, what is given is what was computed: a measure
// of other numbers would be taken for that of the samples.
func TestEveryFlippedByteOfKeptFeatures(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Say: func(error) {}}
	want := []float64{1.5, -2, 3e-9, 0.25, 0, 77}
	computed := 0
	ask := func() []float64 {
		t.Helper()
		m, err := c.Features(t.Context(), nil, 3, Random(1, Size{1, 8, 8}), "a", "", func() (quality.Matrix, error) {
			computed++
			return quality.Matrix{N: 3, D: 2, X: slices.Clone(want)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return m.X
	}
	ask()
	files, err := filepath.Glob(filepath.Join(c.Dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		if err := os.WriteFile(files[0], damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := ask(); !slices.Equal(got, want) {
			t.Fatalf("with byte %d of %d flipped the features are %v, want %v", i, len(whole), got, want)
		}
	}
	if computed < len(whole)/2 { // padding does not matter
		t.Errorf("computed %d times for %d damaged files", computed, len(whole))
	}
	if again := computed; !slices.Equal(ask(), want) || computed != again {
		t.Error("what was computed last is not kept")
	}
}

// What may not be read is not called damaged: a folder of another user's is one that takes
// nothing, of which it is said once that nothing is kept.
func TestAbsent(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOENT: true, syscall.ENOTDIR: true, syscall.EACCES: true, syscall.EPERM: true, syscall.EIO: false, io.ErrUnexpectedEOF: false} {
		if got := absent(&fs.PathError{Op: "open", Path: "f", Err: err}); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
