package importer

import (
	"bytes"
	"image/color"
	"strings"
	"testing"

	"ebtrain/data"
)

func FuzzIDX(f *testing.F) {
	f.Add(idxFile(idxPictures, 2, 3, 3), true)
	f.Add(idxFile(idxLabels, 4), false)
	f.Add(gz(f, idxFile(idxLabels, 4)), false)
	f.Fuzz(func(t *testing.T, b []byte, pictures bool) {
		magic := uint32(idxLabels)
		if pictures {
			magic = idxPictures
		}
		r, err := newIDX(bytes.NewReader(b), magic)
		if err != nil {
			return
		}
		rec := make([]byte, r.h*r.w)
		for i := 0; i < r.n && err == nil; i++ {
			err = r.next(rec)
		}
	})
}

func FuzzPartition(f *testing.F) {
	f.Add("000001.jpg 0\r\n000002.jpg 2\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parsePartition(strings.NewReader(s))
		if err != nil {
			return
		}
		for name, k := range list {
			if k < 0 || k > 2 || name == "" {
				t.Fatalf("%q is in %d", name, k)
			}
		}
	})
}

func FuzzTar(f *testing.F) {
	f.Add(tarOf(f, file{"a/0.jpg", []byte{1}}, file{"a/0.cls", []byte("3")}, file{"a/1.png", nil}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &tarReader{budget: newBudget(1 << 20)}
		for s, err := range r.group(t.Context(), bytes.NewReader(b)) {
			if err == nil && s.key == "" {
				t.Fatal("a sample without a name")
			}
			if l, err := s.class(); err == nil && l < -1 {
				t.Fatalf("class %d", l)
			}
			if s.held < int64(len(s.picture)) {
				t.Fatalf("a picture of %d bytes holds %d", len(s.picture), s.held)
			}
			r.budget.give(s.held)
		}
	})
}

func FuzzSplitKey(f *testing.F) {
	f.Add("./dir.x/000.seg.png")
	f.Add("../../etc/passwd")
	f.Fuzz(func(t *testing.T, name string) {
		key, ext := splitKey(name)
		if strings.HasPrefix(key, "../") || strings.HasPrefix(key, "/") || strings.Contains(ext, "/") {
			t.Fatalf("%q becomes %q and %q", name, key, ext)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(pngOf(f, plain(3, 3, color.White)), 2, 1, 2, 2)
	f.Add(jpegOf(f, plain(9, 8, color.White)), 0, 0, 4, 7)
	f.Fuzz(func(t *testing.T, b []byte, cropH, cropW, h, w int) {
		g := Geometry{Crop: data.Size{H: cropH, W: cropW}, Size: data.Size{H: h, W: w}}
		if g.Validate() != nil || max(h, w) > 64 {
			return
		}
		head, err := readHeader(bytes.NewReader(b))
		if err != nil || head.w*head.h > 1<<16 {
			return // slow, not wrong
		}
		p, err := g.decode(t.Context(), newBudget(1<<28), inMemory(b))
		if want := g.size(); err == nil && want != none && len(p) != 3*want.H*want.W {
			t.Fatalf("%d bytes for a size of %v", len(p), want)
		}
	})
}

func FuzzFrey(f *testing.F) {
	f.Add(matFile("ff", 2, 3, func(i int) float64 { return float64(i) }))
	f.Add(matFile("faces", 1, 1, func(int) float64 { return 0 }))
	f.Fuzz(func(t *testing.T, b []byte) {
		pixels, err := parseFrey(bytes.NewReader(b))
		if err == nil && len(pixels) != 560*1965 {
			t.Fatalf("%d pixels", len(pixels))
		}
	})
}
