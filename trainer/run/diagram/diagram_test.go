package diagram

import (
	"image"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// TestMarks: labels have no zeros behind the point, and small marks none at all.
func TestMarks(t *testing.T) {
	var labels []string
	none := 0
	for _, m := range marks(0, 1) {
		if m.Label == "" {
			none++
			continue
		}
		labels = append(labels, m.Label)
	}
	if got := strings.Join(labels, " "); got != "0 0.5 1" || none == 0 {
		t.Errorf("labels %q, and %d marks without", got, none)
	}
}

// TestBeside: rows are about as many as they are long, up to three diagrams, and each
// diagram has its place; a legend has one of its own above.
func TestBeside(t *testing.T) {
	side := func(n int, legend *plot.Legend) image.Image {
		var all []*plot.Plot
		for range n {
			all = append(all, New("a", "b"))
		}
		return Beside(all, legend)
	}
	one := side(1, nil)
	for n, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 3: {2, 2}, 4: {2, 2}, 5: {3, 2}, 9: {3, 3}, 10: {3, 4}} {
		m := side(n, nil)
		across, down := m.Bounds().Dx()*10/one.Bounds().Dx(), m.Bounds().Dy()*10/one.Bounds().Dy()
		if (across+5)/10 != want[0] || (down+5)/10 != want[1] {
			t.Errorf("%d diagrams: %v, one is %v, want %d times %d", n, m.Bounds().Size(), one.Bounds().Size(), want[0], want[1])
		}
		w, h := m.Bounds().Dx()/want[0], m.Bounds().Dy()/want[1]
		for i := range n {
			if !inked(m, image.Rect(0, 0, w, h).Add(image.Pt(i%want[0]*w, i/want[0]*h))) {
				t.Errorf("%d diagrams: nothing is drawn where diagram %d belongs", n, i)
			}
		}
	}
	legend := plot.NewLegend()
	legend.Add("run")
	if named := side(1, &legend); named.Bounds().Dy() <= one.Bounds().Dy() || named.Bounds().Dx() != one.Bounds().Dx() {
		t.Errorf("%v with a legend, %v without", named.Bounds().Size(), one.Bounds().Size())
	}
}

// TestOneValue: a curve whose values are all equal is drawn, however large they are.
func TestOneValue(t *testing.T) {
	for _, v := range []float64{0, 0.5, 1e20, -1e61} {
		l, err := plotter.NewLine(plotter.XYs{{X: 1, Y: v}, {X: 2, Y: v}})
		if err != nil {
			t.Fatal(err)
		}
		p := New("a", "b")
		p.Add(l)
		Beside([]*plot.Plot{p}, nil)
		if low, high := p.Y.Min, p.Y.Max; !(low < v && v < high) {
			t.Errorf("%v is drawn from %v to %v", v, low, high)
		}
	}
}

// inked says whether a part of a picture is anything but white.
func inked(m image.Image, part image.Rectangle) bool {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			if r, g, b, _ := m.At(x, y).RGBA(); r+g+b < 3*0xffff {
				return true
			}
		}
	}
	return false
}
