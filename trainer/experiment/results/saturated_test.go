package results

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// curve has its points at every hundred steps.
func curve(y ...float64) []measure.Point {
	points := make([]measure.Point, len(y))
	for i, v := range y {
		points[i] = measure.Point{X: float64(100 * (i + 1)), Y: v}
	}
	return points
}

func TestRests(t *testing.T) {
	rule := plan.Saturation{Curves: []string{"noise", "faces"}, Within: 0.01, Least: 3}
	for name, c := range map[string]struct {
		noise, faces []measure.Point
		from         float64
		ok           bool
	}{
		"one that lives":                        {curve(0.1, 0.5, 0.3, 0.9, 0.4), curve(0.5, 0.6, 0.4, 0.5, 0.6), 0, false},
		"both stay":                             {curve(0.1, 0.5, 0.664, 0.668, 0.669), curve(0.3, 0.4, 0.436, 0.436, 0.436), 300, true},
		"the later one counts":                  {curve(0.66, 0.66, 0.66, 0.66, 0.66), curve(0.3, 0.5, 0.436, 0.436, 0.436), 300, true},
		"and in the other order":                {curve(0.3, 0.5, 0.436, 0.436, 0.436), curve(0.66, 0.66, 0.66, 0.66, 0.66), 300, true},
		"noise is told for good, faces are not": {curve(0.9, 1, 1, 1, 1), curve(0.5, 0.4, 0.6, 0.3, 0.5), 0, false},
		"at two checkpoints only":               {curve(0.1, 0.5, 0.2, 0.66, 0.66), curve(0.3, 0.5, 0.4, 0.436, 0.436), 0, false},
		"slowly, and always on":                 {curve(0.1, 0.64, 0.65, 0.66, 0.67), curve(0.4, 0.4, 0.4, 0.4, 0.4), 0, false},
		"slowly":                                {curve(0.1, 0.5, 0.652, 0.658, 0.67), curve(0.4, 0.4, 0.4, 0.4, 0.4), 0, false},
		"no energies":                           {nil, nil, 0, false},
		"one curve is not there":                {curve(0.5, 0.5, 0.5, 0.5), nil, 0, false},
	} {
		from, ok := rests(map[string][]measure.Point{"noise": c.noise, "faces": c.faces}, rule)
		if from != c.from || ok != c.ok {
			t.Errorf("%s: from %v, %t; want %v, %t", name, from, ok, c.from, c.ok)
		}
	}
}

// TestSaturated: which energies saturated, and from when on, is said by row and seed, and
// beside the verdicts that rest on them.
func TestSaturated(t *testing.T) {
	e := plan.Experiment{
		Name: "x", Seeds: []uint64{1, 2}, Columns: []string{"ll"}, Rows: []plan.Row{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Saturates: &plan.Saturation{Curves: []string{"auroc-noise"}, Within: 0.01, Least: 2},
		Checks: []judge.Check{
			judge.Order{Rising: judge.Rows("ll", "a", "b")}, judge.Order{Rising: judge.Rows("ll", "b", "c")},
			judge.Order{Rising: judge.Rows("rmse", "a", "b")},
		},
	}
	root := t.TempDir()
	for i, row := range []string{"a", "b", "c"} {
		for _, seed := range e.Seeds {
			y := curve(0.1, 0.5, 0.5)
			if row == "a" && seed == 1 {
				y = curve(0.1, 0.5, 0.5, 0.5)
			}
			if row == "b" && seed == 1 || row == "c" {
				y = curve(0.1, 0.5, 0.7)
			}
			c := cell.Cell{Root: root, Experiment: e.Name, Row: row, Seed: seed}
			m := cell.Measured{Ended: began.Add(time.Minute), Values: map[string]float64{"ll": float64(i)}, Curves: map[string][]measure.Point{"auroc-noise": y}}
			if err := errors.Join(c.Begin(cell.Begun{Started: began}), c.Finish(m)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := Load(root, e)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{}
	p.saturation(s)
	p.claims(s)
	for _, want := range []string{
		"Energies that saturated, from step 200: a seed 1 and 2, b seed 2. From there on none of AUROC against noise is further than 0.01 ",
		"| ll: a < b | holds | for 2 seeds and in the mean (saturated: a seed 1 and 2, b seed 2) |",
		"| ll: b < c | holds | for 2 seeds and in the mean (saturated: b seed 2) |",
		"| rmse: a < b | not run | no rmse of a, rmse of b |",
	} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("want %q in\n%s", want, p.String())
		}
	}
	s.e.Saturates = nil
	p = &page{}
	if p.saturation(s); p.String() != "" {
		t.Errorf("nothing is looked for, and %q", p.String())
	}
}
