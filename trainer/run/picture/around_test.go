package picture

import (
	"image"
	"image/color"
	"math"
	"testing"
)

func TestAround(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, tt := range []struct {
		name    string
		samples []float32
		margin  float64
		want    Region
	}{
		{"two", []float32{0, -2, 4, 2}, 0.25, Region{-1, 5, -3, 3}},
		{"one line", []float32{0, 7, 4, 7}, 0, Region{0, 4, 6.5, 7.5}},
		{"no numbers count", []float32{0, 0, nan, 100, 100, inf, 1, 1}, 0, Region{0, 1, 0, 1}},
		{"none", []float32{nan, 0}, 0.5, Region{0, 1, 0, 1}},
		{"empty", nil, 0.5, Region{0, 1, 0, 1}},
		{"huge", []float32{1e30, 0}, 0.5, Region{1e30 - 1e24, 1e30 + 1e24, -0.5, 0.5}},
	} {
		got := Around(tt.samples, tt.margin)
		for i, pair := range [][2]float64{{got.X0, tt.want.X0}, {got.X1, tt.want.X1}, {got.Y0, tt.want.Y0}, {got.Y1, tt.want.Y1}} {
			if !(math.Abs(pair[0]-pair[1]) <= 1e-7*math.Abs(pair[1])) {
				t.Errorf("%s: side %d is %v, want %v", tt.name, i, pair[0], pair[1])
			}
		}
		if err := got.check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestBeside(t *testing.T) {
	plain := func(r image.Rectangle, c uint8) image.Image {
		m := image.NewGray(r)
		for i := range m.Pix {
			m.Pix[i] = c
		}
		return m
	}
	m := Beside(plain(image.Rect(5, 5, 8, 7), 10), plain(image.Rect(0, 0, 2, 4), 20))
	if m.Bounds() != image.Rect(0, 0, 5, 4) {
		t.Fatalf("bounds %v", m.Bounds())
	}
	for at, want := range map[image.Point]uint8{{0, 0}: 10, {2, 1}: 10, {2, 2}: 255, {3, 0}: 20, {4, 3}: 20} {
		if r, _, _, _ := m.At(at.X, at.Y).RGBA(); uint8(r>>8) != want {
			t.Errorf("%v is %d, want %d", at, r>>8, want)
		}
	}
}

// Rows has the columns that are asked for, where Grid chooses them.
func TestRows(t *testing.T) {
	m, err := Rows(Unit([]float32{0, 1, 0, 1, 0, 1}, 6, 1, 1, 1), 3, 1)
	if err != nil || m.Bounds().Size() != image.Pt(3*3+2, 2*3+2) {
		t.Fatalf("%v, %v", m.Bounds(), err)
	}
	for i := range 6 {
		at := image.Pt(2+3*(i%3), 2+3*(i/3))
		if want := (color.Gray{uint8(255 * (i % 2))}); m.At(at.X, at.Y) != want {
			t.Errorf("image %d is %v, want %v", i, m.At(at.X, at.Y), want)
		}
	}
	if _, err := Rows(Unit([]float32{0}, 1, 1, 1, 1), 0, 1); err == nil {
		t.Error("rows of nothing")
	}
}
