package importer

import (
	"image"
	"image/color"
	"math"
	"path/filepath"
	"testing"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// ramp is a picture whose red is its column and whose green is its row.
func ramp(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x), uint8(y), 0, 255})
		}
	}
	return m
}

// A picture is resized, by one factor in both directions, until it covers the
// size that was asked for; then its centre is cut out. So each sample's colours
// say which place of the picture it shows.
func TestSizesNeedNotBeSquare(t *testing.T) {
	for _, tt := range []struct {
		w, h       int // of the picture
		g          Geometry
		rows, cols int
		x, y       float64 // the middle of the sample's first pixel, in the picture
		step       float64 // to the next one
	}{
		{178, 218, Geometry{Size: data.Size{H: 109, W: 89}}, 109, 89, 0.5, 0.5, 2},
		{200, 100, Geometry{Size: data.Size{H: 20, W: 10}}, 20, 10, 77, 2, 5}, // 40×20, its 10 middle columns
		{100, 200, Geometry{Size: data.Size{H: 10, W: 20}}, 10, 20, 2, 77, 5}, // 20×40, its 10 middle rows
		{178, 218, Geometry{Crop: data.Size{H: 178, W: 140}}, 178, 140, 19, 20, 1},
		{178, 218, Geometry{Crop: data.Size{H: 160, W: 120}, Size: data.Size{H: 40, W: 30}}, 40, 30, 30.5, 30.5, 4},
		{178, 218, Geometry{Crop: data.Square(140)}, 140, 140, 19, 39, 1},
		{178, 218, Geometry{Crop: data.Square(140), Size: data.Square(70)}, 70, 70, 19.5, 39.5, 2},
		{28, 20, Geometry{}, 20, 28, 0, 0, 1},
	} {
		p, err := tt.g.decodeNow(t.Context(), inMemory(pngOf(t, ramp(tt.w, tt.h))))
		if err != nil || len(p) != 3*tt.rows*tt.cols {
			t.Fatalf("%d×%d, %+v: %d bytes, %v, want %d rows of %d", tt.w, tt.h, tt.g, len(p), err, tt.rows, tt.cols)
		}
		for row := 1; row < tt.rows-1; row++ { // the outermost lack neighbours to be averaged with
			for col := 1; col < tt.cols-1; col++ {
				red, green := float64(p[row*tt.cols+col]), float64(p[(tt.rows+row)*tt.cols+col])
				x, y := tt.x+tt.step*float64(col), tt.y+tt.step*float64(row)
				if !(math.Abs(red-x) <= 1) || !(math.Abs(green-y) <= 1) {
					t.Fatalf("%d×%d, %+v: row %d, column %d shows %.0f, %.0f, want %.1f, %.1f", tt.w, tt.h, tt.g, row, col, red, green, x, y)
				}
			}
		}
	}
}

// What an index says of square sizes is part of the digests of sets that exist.
func TestPreprocessingOfSizes(t *testing.T) {
	for want, g := range map[[2]string]Geometry{
		{"centre 140", "32"}:        {Crop: data.Square(140), Size: data.Square(32)},
		{"none", "as is"}:           {},
		{"centre 178x140", "28x20"}: {Crop: data.Size{H: 178, W: 140}, Size: data.Size{H: 28, W: 20}},
		{"none", "64"}:              {Size: data.Square(64)},
	} {
		if p := g.preprocessing("folder"); p["crop"] != want[0] || p["size"] != want[1] {
			t.Errorf("%+v: %v, want %v", g, p, want)
		}
	}
}

// A set that is not square goes through shards, and every byte of them is
// checked, like others.
func TestShardsNeedNotBeSquare(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		put(t, filepath.Join(dir, name), pngOf(t, ramp(20, 28)))
	}
	s, err := Folder(t.Context(), dir, Geometry{}, 0)
	out, _ := imported(t, s, err, Options{})
	if err := shard.Verify(t.Context(), out, nil); err != nil {
		t.Error(err)
	}
	schema, b := load(t, out, "train")
	if schema.String() != "3×28×20 U8" {
		t.Fatalf("samples of %v", schema)
	}
	for i, v := range b.Values {
		row, col := i/20%28, i%20
		if want := []int{col, row, 0}[i/560%3]; int(v) != want {
			t.Fatalf("value %d is %d, want %d", i, v, want)
		}
	}
}

// The crop of BiSM: faces from which hair and ground are cut.
func TestRealCelebACrop140(t *testing.T) {
	src := real(t, "celeba/img_align_celeba_subset9000.zip")
	for want, g := range map[string]Geometry{
		"3×32×32 U8":   {Crop: data.Square(140), Size: data.Square(32)},
		"3×64×64 U8":   {Crop: data.Square(140), Size: data.Square(64)},
		"3×218×178 U8": {Crop: data.Size{H: 218, W: 178}},
	} {
		s, err := CelebA(t.Context(), src, "", g)
		out, _ := imported(t, s, err, Options{Limit: 30})
		if schema, b := load(t, out, "val"); schema.String() != want || len(b.Labels) != 30 {
			t.Errorf("%d samples of %v, want 30 of %s", len(b.Labels), schema, want)
		}
	}
}
