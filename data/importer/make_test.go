package importer

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// put writes a file and its directories.
func put(t testing.TB, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := z.EncodeAll(b, nil)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// idxFile is an idx file of n records of the given size; record i is all i.
func idxFile(magic uint32, n int, dims ...uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	size := 1
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
		size *= int(d)
	}
	for i := range n {
		b = append(b, bytes.Repeat([]byte{byte(i)}, size)...)
	}
	return b
}

// cifarFile is a binary batch of n records; record i has the label i mod 10.
func cifarFile(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, byte(i%10))
		b = append(b, bytes.Repeat([]byte{byte(i)}, cifarPixels)...)
	}
	return b
}

// plain is a picture of one colour.
func plain(w, h int, c color.Color) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, c)
		}
	}
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// file is an entry of an archive.
type file struct {
	name string
	body []byte
}

func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.body)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		e, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(e, bytes.NewReader(f.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imported runs a Set into a fresh directory.
func imported(t *testing.T, s *Set, err error, o Options) (dir string, x *shard.Index) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	o.Out = filepath.Join(t.TempDir(), "out")
	x, err = Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return o.Out, x
}

// load reads a whole split.
func load(t *testing.T, dir, split string) (data.Schema, data.Block) {
	t.Helper()
	r, err := shard.Open(dir, split)
	if err != nil {
		t.Fatal(err)
	}
	var all, b data.Block
	for i := range r.Layout().Spans() {
		if err := r.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		all.Values = append(all.Values, b.Values...)
		all.Labels = append(all.Labels, b.Labels...)
	}
	return r.Schema(), all
}
