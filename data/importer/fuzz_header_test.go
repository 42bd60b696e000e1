package importer

import (
	"bytes"
	"image"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// FuzzHeader holds what a header promises to what decoding then takes.
func FuzzHeader(f *testing.F) {
	for _, name := range []string{"progressive.jpeg", "cmyk.jpeg", "rgb.jpeg", "interlaced.png"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(pngOf(f, image.NewGray16(image.Rect(0, 0, 3, 2))))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if h.w < 1 || h.h < 1 || h.decoded < float64(h.w)*float64(h.h) {
			t.Fatalf("%+v", h)
		}
		const most = 64 << 20
		if h.decoded > most {
			return // slow, not wrong
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = image.Decode(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		// Tables, and one message or buffer for each part of the file.
		if took := float64(after.TotalAlloc - before.TotalAlloc); took > h.decoded+1<<20+64*float64(len(b)) {
			t.Fatalf("%+v, but decoding took %.0f bytes (%v)", h, took, err)
		}
	})
}

// FuzzZip opens all pictures of a zip.
func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, file{"a/b.png", dot(f)}, file{`c\d.jpg`, nil}, file{"__MACOSX/._e.png", nil}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := openTree(t.Context(), put(t, filepath.Join(t.TempDir(), "a.zip"), b))
		if err != nil {
			return
		}
		for _, leaf := range tree.files {
			if strings.HasPrefix(leaf.name, "/") || strings.HasPrefix(leaf.name, "../") || hidden(leaf.name) {
				t.Errorf("a picture called %q", leaf.name)
			}
			r, err := leaf.open(t.Context())
			if err != nil {
				continue
			}
			if _, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err == nil && len(b) == 0 {
				t.Error("pictures in an empty file")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := tree.close(); err != nil {
			t.Error(err)
		}
	})
}
