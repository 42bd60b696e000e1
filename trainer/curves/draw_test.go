package main

import (
	"image"
	"image/color"
	"math"
	"slices"
	"testing"

	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
)

// valued is a run of a line each half hour, of which some loss has the values.
func valued(name string, values ...float64) history {
	h := history{name: name, begun: 1e9}
	for i, v := range values {
		h.records = append(h.records, rundir.Record{Step: int64(i + 5), Time: 1e9 + 1800*float64(i), Losses: map[string]float64{"lower": v}})
	}
	return h
}

// TestDiagram: a diagram says what it shows, and its axes hold all runs.
func TestDiagram(t *testing.T) {
	longer := history{begun: 1e9, records: []rundir.Record{{Step: 5, Time: 1e9}, {Step: 9, Time: 1e9 + 7200}}} // has not logged it
	p, err := options{x: hours}.diagram([]history{valued("a", 1, 2, 3), valued("b", 11, 12), longer}, "lower")
	if err != nil {
		t.Fatal(err)
	}
	if p.Title.Text != "lower" || p.X.Label.Text != "hours" || p.X.Min != 0 || p.X.Max != 2 || !near(p.Y.Min, 1-0.55) || !near(p.Y.Max, 12+0.55) {
		t.Errorf("%q over %q: %v to %v, %v to %v", p.Title.Text, p.X.Label.Text, p.X.Min, p.X.Max, p.Y.Min, p.Y.Max)
	}
	p, err = options{x: steps}.diagram([]history{valued("a", math.NaN(), math.Inf(-1))}, "lower")
	if err != nil {
		t.Fatal(err)
	}
	if p.Title.Text != "lower: no value is a number" || p.X.Min != 0 || p.X.Max != 1 || p.Y.Min != 0 || p.Y.Max != 1 {
		t.Errorf("without numbers: %q, %v to %v, %v to %v", p.Title.Text, p.X.Min, p.X.Max, p.Y.Min, p.Y.Max)
	}
}

// TestExtent: the axis goes from the first line of all runs to the last, and of one line has
// room on both sides.
func TestExtent(t *testing.T) {
	late := history{records: []rundir.Record{{Step: 7}, {Step: 30}}}
	for _, c := range []struct {
		runs      []history
		low, high float64
	}{
		{[]history{valued("a", 1, 2, 3)}, 5, 7},
		{[]history{valued("a", 1, 2, 3), late}, 5, 30},
		{[]history{late, valued("a", 1, 2, 3)}, 5, 30},
		{[]history{valued("a", 1)}, 4, 6},
	} {
		if low, high := (options{x: steps}).extent(c.runs); low != c.low || high != c.high {
			t.Errorf("%v to %v, want %v to %v", low, high, c.low, c.high)
		}
	}
}

// TestEdge: the band goes along what most are below and back along what most are above, within
// what a diagram has room for.
func TestEdge(t *testing.T) {
	got := edge([]bin{{x: 1, low: 2, high: 5}, {x: 3, low: -math.MaxFloat64, high: 6}, {x: 4, low: 1, high: math.MaxFloat64}})
	want := [][2]float64{{1, 5}, {3, 6}, {4, far}, {4, 1}, {3, -far}, {1, 2}}
	for i, p := range got {
		if p.X != want[i][0] || p.Y != want[i][1] {
			t.Errorf("point %d: %v, want %v", i, p, want[i])
		}
	}
}

// TestPicture: four diagrams stand two by two, each with the curves of both runs and the bands
// around them, below the names of the runs; one run's picture has no names.
func TestPicture(t *testing.T) {
	noise := func(name string, up float64) history {
		h := valued(name, make([]float64, 400)...)
		for i := range h.records {
			v := up + float64(i%7)
			h.records[i].Losses = map[string]float64{"a": v, "b": v, "c": v, "d": v}
		}
		return h
	}
	columns := []string{"a", "b", "c", "d"}
	runs := []history{noise("one", 0), noise("two", 20)}
	both, err := options{x: steps}.draw(runs, columns)
	if err != nil {
		t.Fatal(err)
	}
	single, err := options{x: steps}.draw(runs[:1], columns)
	if err != nil {
		t.Fatal(err)
	}
	size, legend := single.Bounds().Size(), both.Bounds().Dy()-single.Bounds().Dy()
	if legend < 20 || both.Bounds().Dx() != size.X {
		t.Fatalf("%v with names, %v without", both.Bounds().Size(), size)
	}
	for i := range runs {
		c := picture.Hue(i, len(runs))
		if n := tally(part(both, image.Rect(0, 0, size.X, legend)), c); n < 20 {
			t.Errorf("run %d: %d points among the names", i, n)
		}
		for at := range 4 {
			corner := image.Pt(at%2*size.X/2, legend+at/2*size.Y/2)
			cell := part(both, image.Rectangle{corner, corner.Add(size.Div(2))})
			if line, around := tally(cell, c), pale(cell, c); line < 100 || around < 100 {
				t.Errorf("run %d: %d points of a line and %d of its band in diagram %d", i, line, around, at)
			}
		}
	}
}

// TestOnePoint: one value is a dot in its run's colour.
func TestOnePoint(t *testing.T) {
	one, err := options{x: steps}.draw([]history{valued("a", 1)}, []string{"lower"})
	if err != nil {
		t.Fatal(err)
	}
	if n := coloured(one); n < 5 {
		t.Errorf("it has %d points", n)
	}
}

// coloured is how many points of a picture are neither black nor grey nor white.
func coloured(m image.Image) (n int) {
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			if r, g, b, _ := m.At(x, y).RGBA(); r != g || g != b {
				n++
			}
		}
	}
	return n
}

// pale is how many points of a picture have a colour that covers 60 parts in 255 of white, to
// rounding.
func pale(m image.Image, c color.RGBA) (n int) {
	like := func(got uint32, c uint8) bool {
		want := (60*int(c) + 195*255) / 255
		return max(int(got>>8)-want, want-int(got>>8)) <= 2
	}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			if r, g, b, _ := m.At(x, y).RGBA(); like(r, c.R) && like(g, c.G) && like(b, c.B) {
				n++
			}
		}
	}
	return n
}

func part(m image.Image, r image.Rectangle) image.Image {
	return m.(interface {
		SubImage(r image.Rectangle) image.Image
	}).SubImage(r)
}

// TestColumnNumbers: what is no number is counted, and not drawn.
func TestColumnNumbers(t *testing.T) {
	h := valued("a", 1, math.NaN(), math.Inf(1), math.Inf(-1), 2)
	if xs, ys, none := h.column("lower", steps); !slices.Equal(xs, []float64{5, 9}) || !slices.Equal(ys, []float64{1, 2}) || none != 3 {
		t.Errorf("%v at %v, and %d are no numbers", ys, xs, none)
	}
}
