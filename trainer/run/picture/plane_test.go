package picture

import (
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"
)

var unitSquare = Region{0, 1, 0, 1}

func TestCentres(t *testing.T) {
	got := Region{2, 4, -1, 0}.Centres(2, 2)
	if want := []float32{2.5, -0.75, 3.5, -0.75, 2.5, -0.25, 3.5, -0.25}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// areaOf is the plot without its surroundings: what lies inside the first frame.
func areaOf(t *testing.T, m image.Image, w, h int) *image.NRGBA {
	t.Helper()
	all, ok := m.(*image.NRGBA)
	if !ok || !all.Opaque() {
		t.Fatalf("%T, want an opaque *image.NRGBA", m)
	}
	black := color.NRGBA{0, 0, 0, 255}
	for y := range all.Rect.Max.Y {
		for x := range all.Rect.Max.X - 1 {
			if all.NRGBAAt(x, y) == black && all.NRGBAAt(x+1, y) == black && all.NRGBAAt(x, y+1) == black {
				return all.SubImage(image.Rect(x+1, y+1, x+1+w, y+1+h)).(*image.NRGBA)
			}
		}
	}
	t.Fatal("no frame")
	return nil
}

// Cell (i, j) has its colour over its whole square, y upwards.
func TestDensity(t *testing.T) {
	p := []float64{0, 0.25, 0.5, 1, 0.125, 1e-3} // rows of 3, the first below
	for _, tt := range []struct {
		scale Scale
		level func(p float64) float64
	}{
		{Linear, func(p float64) float64 { return p }},
		{Log, func(p float64) float64 { return max(0, 1+math.Log10(p)/6) }},
	} {
		for _, shift := range []float64{0, 1e4, -1e4} { // without a normaliser
			logp := make([]float64, 6)
			for i := range p {
				logp[i] = math.Log(p[i]) + shift
			}
			m, err := Density(Map{logp, 3, 2, Region{-1, 2, 0, 2}}, tt.scale)
			if err != nil {
				t.Fatal(err)
			}
			zoom := plotSize / 3
			a := areaOf(t, m, 3*zoom, 2*zoom)
			for i, p := range p {
				want := cubehelix(tt.level(p))
				for _, at := range []image.Point{{i % 3 * zoom, (1 - i/3) * zoom}, {(i%3+1)*zoom - 1, (2-i/3)*zoom - 1}} {
					got := a.NRGBAAt(a.Rect.Min.X+at.X, a.Rect.Min.Y+at.Y)
					if !alike(got, want) {
						t.Errorf("%v, shift %v: cell %d of density %v is %v at %v, want %v", tt.scale, shift, i, p, got, at, want)
					}
				}
			}
		}
	}
}

// alike allows for the rounding of a level.
func alike(a, b color.NRGBA) bool {
	near := func(x, y uint8) bool { return x-y <= 1 || y-x <= 1 }
	return near(a.R, b.R) && near(a.G, b.G) && near(a.B, b.B)
}

// The colours' luminance rises with the level, from black to white.
func TestColours(t *testing.T) {
	if first, last := cubehelix(0), cubehelix(1); first != (color.NRGBA{0, 0, 0, 255}) || last != (color.NRGBA{255, 255, 255, 255}) {
		t.Errorf("from %v to %v", first, last)
	}
	before := -1.0
	for i := range 101 {
		c := cubehelix(float64(i) / 100)
		grey := 0.30*float64(c.R) + 0.59*float64(c.G) + 0.11*float64(c.B)
		if !(grey > before) {
			t.Errorf("level %d%%: luminance %v after %v", i, grey, before)
		}
		before = grey
	}
}

// Dots lie where their samples do, and what is not shown is counted above.
func TestScatter(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, r := range []Region{unitSquare, {-1, 3, 2, 6}} {
		var samples []float32
		for _, v := range [][2]float64{{0.25, 0.75}, {0.25, 0.75}, {1, 0}, {0, 1}, {1.5, 0}, {-0.5, 0}, {0, 1.5}, {0, -0.5}, {0, inf}, {nan, 0}, {0, nan}} {
			samples = append(samples, float32(r.X0+v[0]*(r.X1-r.X0)), float32(r.Y0+v[1]*(r.Y1-r.Y0)))
		}
		m, err := Scatter(samples, "points", r)
		if err != nil {
			t.Fatal(err)
		}
		a := areaOf(t, m, plotSize, plotSize)
		inked := map[image.Point]bool{}
		for y := range plotSize {
			for x := range plotSize {
				if a.NRGBAAt(a.Rect.Min.X+x, a.Rect.Min.Y+y) != (color.NRGBA{255, 255, 255, 255}) {
					inked[image.Pt(x, y)] = true
				}
			}
		}
		if len(inked) != 9+4+4 || !inked[image.Pt(0, 0)] || !inked[image.Pt(100, 99)] || !inked[image.Pt(101, 100)] || !inked[image.Pt(399, 399)] {
			t.Errorf("%v: ink at %v", r, inked)
		}
		once, twice := a.NRGBAAt(a.Rect.Min.X+399, a.Rect.Min.Y+399), a.NRGBAAt(a.Rect.Min.X+100, a.Rect.Min.Y+99)
		if !(twice.R < once.R) {
			t.Errorf("two samples %v, one %v: want darker", twice, once)
		}
		want := newPlane(r, plotSize, plotSize, 0)
		want.title("11 points, 5 outside, 2 NaN")
		above := image.Rect(0, 0, want.Rect.Max.X, want.area.Min.Y-1)
		if text(m.(*image.NRGBA).SubImage(above)) != text(want.SubImage(above)) {
			t.Errorf("%v: above it stands something else than 11 points, 5 outside, 2 NaN", r)
		}
	}
	for want, n := range map[string][2]int{"6 points": {}, "6 points, 2 outside": {2, 0}, "6 points, 1 NaN": {0, 1}} {
		if got := caption(6, "points", n[0], n[1]); got != want {
			t.Errorf("caption %q, want %q", got, want)
		}
	}
}

// What is written shows: another range makes another picture outside the area,
// and its sides keep their proportion.
func TestLabels(t *testing.T) {
	a, err := Scatter([]float32{0, 0}, "points", unitSquare)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Scatter([]float32{0, 0}, "points", Region{0, 7, 0, 7})
	if err != nil {
		t.Fatal(err)
	}
	if a.Bounds() != b.Bounds() || text(a) == text(b) {
		t.Errorf("ranges of 1 and 7 look alike (%v, %v)", a.Bounds(), b.Bounds())
	}
	wide, err := Scatter([]float32{0, 0}, "points", Region{0, 4, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := a.Bounds().Size().Sub(wide.Bounds().Size()); d != image.Pt(0, plotSize*3/4) {
		t.Errorf("a region of 4×1 is smaller than a square one by %v", d)
	}
}

func TestExponential(t *testing.T) {
	for x, want := range map[float64]string{0: "1", math.Log(1234): "1.23e+03", 1e4: "e^1e+04", -1e4: "e^-1e+04"} {
		if got := exponential(x); got != want {
			t.Errorf("e^%v is %q, want %q", x, got, want)
		}
	}
}

func TestPlaneErrors(t *testing.T) {
	inf := math.Inf(1)
	density := func(v ...float64) func() error {
		return func() error { _, err := Density(Map{v, 2, 1, unitSquare}, Log); return err }
	}
	scatter := func(r Region, v ...float32) func() error {
		return func() error { _, err := Scatter(v, "points", r); return err }
	}
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"NaN", density(0, math.NaN()), "cell (1, 0) is NaN"},
		{"infinite", density(inf, 0), "cell (0, 0) is +Inf"},
		{"nothing", density(-inf, -inf), "density is 0 in all of [0, 1] × [0, 1]"},
		{"cut", density(0), "1 values of a density, expected 1×2"},
		{"scale", func() error { _, err := Density(Map{[]float64{0}, 1, 1, unitSquare}, 7); return err }, "unknown scale 7"},
		{"region", func() error { _, err := Density(Map{[]float64{0}, 1, 1, Region{1, 1, 0, 1}}, Log); return err }, "region [1, 1]"},
		{"no samples", scatter(unitSquare), "0 numbers"},
		{"half a sample", scatter(unitSquare, 1), "1 numbers"},
		{"falling", scatter(Region{1, 0, 0, 1}, 1, 1), "region [1, 0]"},
		{"endless", scatter(Region{-inf, inf, 0, 1}, 1, 1), "expected finite ranges"},
	} {
		if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}
