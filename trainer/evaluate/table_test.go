package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/run/diagram"
)

// TestBetter: of what has no better way, or the other one, as a supremum's estimate, the
// marks are right.
func TestBetter(t *testing.T) {
	at := func(critic, given, blind float64) tableRow {
		return tableRow{report: &report{Critic: &critic, Truth: new(9.0), Recollection: &recollection{Given: sentences{NLL: given}, Blind: sentences{NLL: blind}}}}
	}
	names, best := table{at(1, 5, 6), at(2, 4, 9)}.columns()
	if !slices.Equal(names, []string{"critic", "nll_given", "nll_blind"}) || !slices.Equal(best, []int{1, 1, -1}) {
		t.Errorf("got %v, best in rows %v", names, best)
	}
}

// TestNearIsNoWorse: of how far the nearest training pictures are no checkpoint is the best: noise
// is farthest. The row is there by that name.
func TestNearIsNoWorse(t *testing.T) {
	at := func(far float64) tableRow {
		var c comparison
		c.Sizes = map[string]int{}
		c.keep(setSamples, 9, []compare.Value{{Row: rowNeighbour, Value: far}, {Row: "coverage", Value: far}})
		return tableRow{report: &report{Quality: &c}}
	}
	all := table{at(0.3), at(0.6)}
	if names, best := all.columns(); !slices.Equal(names, []string{rowNeighbour, "coverage"}) || !slices.Equal(best, []int{-1, 1}) {
		t.Errorf("got %v, best in rows %v", names, best)
	}
	var alone strings.Builder
	if err := all[:1].write(&alone); err != nil || strings.Contains(alone.String(), "*") {
		t.Errorf("%v, one checkpoint is the best of one:\n%s", err, &alone)
	}
	if title := all[0].report.Quality.row(rowNeighbour).Title; title != "nearest training picture" {
		t.Errorf("the row %s is called %q", rowNeighbour, title)
	}
}

func TestReadSteps(t *testing.T) {
	for text, want := range map[string][]int64{"-1": {-1}, "0": {0}, "20,5, 100": {5, 20, 100}, "all": nil} {
		got, err := readSteps(text)
		if err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
		if o := (options{steps: got}); o.several() != (len(want) != 1) {
			t.Errorf("%q: several is %t", text, o.several())
		}
	}
}

// TestTableOfCheckpoints: each column has its best row marked, whichever way is better there, and NaN is
// none; a row without numbers says why.
func TestTableOfCheckpoints(t *testing.T) {
	at := func(step int64, rmse, area, kid float64) tableRow {
		return tableRow{step: step, report: &report{
			Run: "runs/a", Step: step, Data: "shards/a", Split: "val", Images: 10, noun: "images", RMSEBatch: &rmse, RMSERunning: new(0.5),
			Energies: []energies{{Of: "data", Mean: 3}}, AUROC: []auroc{{otherSamples, 0.5}, {"noise", area}},
			Quality: &comparison{Notes: []string{"sets are small"}, Rows: []comparisonRow{{Name: "kid", Better: compare.Lower, Samples: &kid, Floor: new(0.5)}}}, Lacking: []string{"ll: none"},
		}}
	}
	var out strings.Builder
	all := table{{step: 5, diverged: "the mean is NaN"}, at(10, 0.25, 0.5, math.NaN()), at(20, 0.125, 0.75, 7), at(30, 0.25, 0.875, 6)}
	all[3].report.Energies = nil
	if err := all.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `runs/a, 10 images of shards/a/val
ll: none
sets are small

step   rmse      rmse_running  energy data  auroc samples  auroc noise  kid
5      diverged                                                         
10     0.25      0.5*          3            0.5            0.5          NaN
20     0.125*    0.5           3            0.5            0.75         7
30     0.25      0.5           –            0.5            0.875*       6*
floor                                                                   0.5

* the best of its column: once this split has chosen it, measure it on another
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := all.allDiverged(); err != nil {
		t.Error(err)
	}
	if err := all[:1].allDiverged(); err == nil || !strings.Contains(err.Error(), "the mean is NaN") {
		t.Errorf("got %v", err)
	}
	out.Reset()
	if err := all[0].writeJSON(&out); err != nil || out.String() != `{"diverged":"the mean is NaN","step":5}`+"\n" {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

// red is how many points of a diagram are in colour.
func red(p *plot.Plot) (n int) {
	m := diagram.Beside([]*plot.Plot{p}, nil)
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			if r, g, b, _ := m.At(x, y).RGBA(); r != g || g != b {
				n++
			}
		}
	}
	return n
}

// TestChart: numbers that two rows have are drawn over their steps, with the best as the
// largest dot and real samples' number dashed; others are not, nor what is no number.
func TestChart(t *testing.T) {
	at := func(step int64, rmse, kid float64) tableRow {
		return tableRow{step: step, report: &report{RMSEBatch: &rmse,
			Quality: &comparison{Rows: []comparisonRow{{Name: "kid", Better: compare.Lower, Samples: &kid, Floor: new(0.5)}}}}}
	}
	all := table{at(10, 0.5, math.NaN()), {step: 20, diverged: "the mean is NaN"}, at(30, 0.25, 7), at(50, 0.375, 6)}
	_, best := all.columns()
	for i, want := range []struct {
		name, title    string
		x0, x1, y0, y1 float64
	}{
		{"rmse", "rmse, lower is better", 10, 50, 0.25 - 1./64, 0.5 + 1./64},
		{"kid", "kid, lower is better; real samples dashed", 30, 50, 0.5 - 6.5/16, 7 + 6.5/16},
	} {
		p, err := all.diagram(want.name, best[i])
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		if p.Title.Text != want.title || p.X.Label.Text != "steps" || p.X.Min != want.x0 || p.X.Max != want.x1 || p.Y.Min != want.y0 || p.Y.Max != want.y1 {
			t.Errorf("%q over %q: %v to %v, %v to %v, want %+v", p.Title.Text, p.X.Label.Text, p.X.Min, p.X.Max, p.Y.Min, p.Y.Max, want)
		}
		plain, err := all.diagram(want.name, -1)
		if err != nil {
			t.Fatal(err)
		}
		if with, without := red(p), red(plain); without == 0 || with-without < 20 {
			t.Errorf("%s: %d points in colour with the best marked, %d without", want.name, with, without)
		}
	}
	if m, err := all.chart(); err != nil || m == nil {
		t.Error(m, err)
	}
	if m, err := all[1:3].chart(); m != nil || err != nil {
		t.Errorf("of one row with numbers: %v, %v", m, err)
	}
}
