package main

import (
	"slices"
	"strings"
	"testing"

	"ebtrain/launch/progressbar"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// asked is a toy that notes by whose statistics it is asked to draw samples.
type asked struct {
	toy.Config
	by *[]nn.Mode
}

func (a asked) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	*a.by = append(*a.by, mode)
	return a.Config.Sample(mode, n)
}

// Samples are drawn by the statistics of --stats.
func TestStats(t *testing.T) {
	for stats, want := range map[string]nn.Mode{"batch": nn.BatchStats, "running": nn.Eval} {
		d, by := toyDrawing(t, options{n: 4, stats: stats}), []nn.Mode{}
		d.run.Model = asked{d.run.Model.(toy.Config), &by}
		if _, err := d.draw(t.Context()); err != nil || len(by) == 0 || slices.ContainsFunc(by, func(m nn.Mode) bool { return m != want }) {
			t.Errorf("--stats %s: drawn by %v, %v; want %v", stats, by, err, want)
		}
	}
}

// Of rows it is shown how far all columns together are: here three, each of one transition.
func TestProgressOfRows(t *testing.T) {
	var out strings.Builder
	d := toyDrawing(t, options{n: 2, given: pictures, split: "test", interpolate: 3})
	d.show = progressbar.ConfigurePhases(progressbar.Config{Out: &out, Terminal: true, Width: func() int { return 100 }})
	if _, err := d.draw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.HasPrefix(s, "\rsample 0/3 [") || !strings.Contains(s, "sample 3/3 [") {
		t.Errorf("shown is %q", s)
	}
}
