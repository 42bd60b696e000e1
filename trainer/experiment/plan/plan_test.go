package plan

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/experiment/judge"
)

// sample is an experiment with every part.
func sample() Experiment {
	return Experiment{
		Name: "one", About: "About.", Data: &DataSet{Name: "d", Builtin: "synth"}, Seeds: []uint64{1},
		Flags: map[string]string{"steps": "10", "lr": "1"}, Evaluate: map[string]string{},
		Curves:  []Curve{{Name: "c", Loss: "upper"}, {Name: "l", Measure: "ll", Every: 5}},
		Columns: []string{"ll", "fisher"},
		Rows: []Row{
			{Name: "a", Preset: "p", Flags: map[string]string{"lr": "2"}, Expect: map[string]judge.Number{"ll": {Value: 1, Tol: 1}, "fisher": {Value: 3}}},
			{Name: "b", Lacks: []string{"fisher", "c"}},
		},
		Checks:   []judge.Check{judge.Order{Rising: judge.Rows("ll", "a", "b")}},
		Figures:  []Figure{{File: "f", Title: "F", Curve: "c"}},
		Pictures: []Picture{{Title: "P", Rows: []string{"a"}}},
	}
}

// TestQuestions: whatever changes what is asked of a row shows, and what does not, does not.
func TestQuestions(t *testing.T) {
	e := sample()
	want := []string{"columns fisher,ll", "curve c: upper every 0", "curve l: ll every 5"}
	if got := e.Questions(e.Rows[0]); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := e.Questions(e.Rows[1]); !slices.Equal(got, []string{"columns ll", "curve l: ll every 5"}) {
		t.Errorf("of a row that lacks some: %q", got)
	}
	e.Columns = []string{"fisher", "ll"}
	if got := e.Questions(e.Rows[0]); !slices.Equal(got, want) {
		t.Errorf("in another order: %q", got)
	}
	for text, change := range map[string]func(*Experiment){
		"evaluate --split=val":                  func(e *Experiment) { e.Evaluate = map[string]string{"split": "val"} },
		"sample --n=4":                          func(e *Experiment) { e.Sample = map[string]string{"n": "4"} },
		"sample --given --n=2":                  func(e *Experiment) { e.Between = map[string]string{"n": "2"} },
		"least ll of 3 checkpoints --split=val": func(e *Experiment) { e.Select = &Selection{"ll", 3, map[string]string{"split": "val"}} },
		"least ll of 4 checkpoints":             func(e *Experiment) { e.Select = &Selection{Measure: "ll", Of: 4} },
		"columns ll,step":                       func(e *Experiment) { e.Columns = []string{"step", "ll"} },
		"ranks [1 2]":                           func(e *Experiment) { e.Ranks = []int{1, 2} },
	} {
		e := sample()
		change(&e)
		if got := e.Questions(e.Rows[0]); !slices.Contains(got, text) {
			t.Errorf("want %q among %q", text, got)
		}
	}
}

func TestSettings(t *testing.T) {
	e := sample()
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row   int
		steps int64
		want  string
	}{
		{0, 0, "--lr=2 --preset=p --seed=7 --steps=10"},
		{0, 3, "--lr=2 --preset=p --seed=7 --steps=3"},
		{1, 0, "--lr=1 --seed=7 --steps=10"},
	} {
		if got := strings.Join(e.Settings(e.Rows[c.row], 7, c.steps), " "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if e.Flags["lr"] != "1" || e.Rows[0].Flags["steps"] != "" {
		t.Error("the experiment was changed")
	}
	e.Rows[1].Flags = map[string]string{"steps": "4"}
	if a, b := e.Steps(e.Rows[0]), e.Steps(e.Rows[1]); a != 10 || b != 4 {
		t.Errorf("%d and %d steps, want 10 and 4", a, b)
	}
	if got := e.Measured(e.Rows[1]); !slices.Equal(got, []string{"ll"}) {
		t.Errorf("b has %v", got)
	}
	checks := e.AllChecks()
	if len(checks) != 2 || checks[0] != (judge.Near{Value: judge.Value{Row: "a", Measure: "ll"}, Want: judge.Number{Value: 1, Tol: 1}}) {
		t.Errorf("checks %v: want the tolerance of a and the order", checks)
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Experiment){
		"a name is of small letters":              func(e *Experiment) { e.Name = "../x" },
		"want About, Rows, Seeds and Columns":     func(e *Experiment) { e.Seeds = nil },
		`row "a": names`:                          func(e *Experiment) { e.Rows[1].Name = "a" },
		`row "B/": names`:                         func(e *Experiment) { e.Rows[1].Name = "B/" },
		"row b: expects rmse, which is no column": func(e *Experiment) { e.Rows[1].Expect = map[string]judge.Number{"rmse": {}} },
		"row b: lacks rmse, which is no column":   func(e *Experiment) { e.Rows[1].Lacks = []string{"rmse"} },
		"row a: --seed is given by the program":   func(e *Experiment) { e.Rows[0].Flags["seed"] = "1" },
		"row b: --out is given by the program":    func(e *Experiment) { e.Flags["out"] = "x" },
		`steps "0": want a number of at least 1`:  func(e *Experiment) { e.Flags["steps"] = "0" },
		`steps "": want a number of at least 1`:   func(e *Experiment) { delete(e.Flags, "steps") },
		"column lll: there is no such measure":    func(e *Experiment) { e.Columns = append(e.Columns, "lll") },
		"column auroc-svhn is of the data set svhn, which is not": func(e *Experiment) {
			e.Columns = append(e.Columns, "auroc-svhn")
		},
		"column auroc-noise-best is of the curve auroc-noise, which there is not": func(e *Experiment) {
			e.Columns = append(e.Columns, "auroc-noise-best")
		},
		"a data set beside its own has a Name": func(e *Experiment) { e.Beside = []DataSet{{Name: "svhn"}} },
		`curve "c": want a name`:               func(e *Experiment) { e.Curves[0].Every = 3 },
		`curve "l": want a name`:               func(e *Experiment) { e.Curves[1].Measure = "lll" },
		"speaks of fisher of b, which is not":  func(e *Experiment) { e.Checks = []judge.Check{judge.Order{Rising: judge.Rows("fisher", "a", "b")}} },
		"speaks of ll of c, which is not": func(e *Experiment) {
			e.Checks = []judge.Check{judge.Bound{Of: judge.Rows("ll", "c"), Lo: math.Inf(-1)}}
		},
		"a judge.Order of nothing": func(e *Experiment) { e.Checks = []judge.Check{judge.Order{}} },
		"a line through 2 values at 1 places": func(e *Experiment) {
			e.Checks = []judge.Check{judge.Linear{Of: judge.Rows("ll", "a", "b"), X: []float64{1}}}
		},
		`figure "f": want a file`: func(e *Experiment) { e.Figures[0].Curve = "none" },
		`figure "g": want a file`: func(e *Experiment) {
			e.Figures = append(e.Figures, Figure{File: "g", Title: "G", Curve: "c", Beside: "none"})
		},
		"f is of row z, which there is not": func(e *Experiment) { e.Figures[0].Rows = []string{"z"} },
		"P is of row z, which there is not": func(e *Experiment) { e.Pictures[0].Rows = []string{"z"} },
		"a data set has a Name":             func(e *Experiment) { e.Data.Make = []string{"x"} },
		"a computed experiment trains nothing": func(e *Experiment) {
			e.Compute = func(context.Context, Computing) (Computed, error) { return Computed{}, nil }
		},
		"column loss-gap: it compares numbers of ranks: true": func(e *Experiment) { e.Columns = append(e.Columns, "loss-gap") },
		"saturation is seen in curves, within a distance above 0": func(e *Experiment) {
			e.Saturates = &Saturation{Curves: []string{"c"}, Within: 0.1, Least: 1}
		},
		"saturation is seen in the curve none, which there is not": func(e *Experiment) {
			e.Saturates = &Saturation{Curves: []string{"c", "none"}, Within: 0.1, Least: 2}
		},
		"a row has data of its own only where": func(e *Experiment) { e.Rows[0].Data = e.Data },
	} {
		e := sample()
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "experiment "+e.Name+": ") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// onRanks is an experiment that compares one rank and two, on data of each row.
func onRanks() Experiment {
	set := func(name string) *DataSet { return &DataSet{Name: name, Builtin: "synth"} }
	return Experiment{
		Name: "ranks", About: "About.", Seeds: []uint64{1}, Alone: true, Ranks: []int{1, 2}, Flags: map[string]string{"steps": "2"},
		Columns: []string{"losses", "loss-gap"},
		Rows:    []Row{{Name: "a", Preset: "p", Data: set("x")}, {Name: "b", Preset: "q", Data: set("y")}, {Name: "c", Preset: "r", Data: set("x")}},
	}
}

func TestValidateRanks(t *testing.T) {
	if err := onRanks().Validate(); err != nil {
		t.Fatal(err)
	}
	const lone = "numbers of ranks are compared alone"
	for want, changes := range map[string][]func(*Experiment){
		"want two numbers or more, rising": {
			func(e *Experiment) { e.Ranks = []int{} }, func(e *Experiment) { e.Ranks = []int{1} }, func(e *Experiment) { e.Ranks = []int{2, 1} },
			func(e *Experiment) { e.Ranks = []int{1, 1} }, func(e *Experiment) { e.Ranks = []int{0, 1} },
		},
		lone: {
			func(e *Experiment) { e.Alone = false }, func(e *Experiment) { e.Sample = map[string]string{} }, func(e *Experiment) { e.Evaluate = map[string]string{} },
			func(e *Experiment) { e.Curves = []Curve{{Name: "c", Loss: "upper"}} }, func(e *Experiment) { e.Pictures = []Picture{{Title: "P"}} },
		},
		"column step-ms: it compares numbers of ranks: false": {func(e *Experiment) { e.Columns = append(e.Columns, "step-ms") }},
		"row b: a data set has a Name":                        {func(e *Experiment) { e.Rows[1].Data = &DataSet{Name: "y"} }},
		"row a: a row has data of its own only where":         {func(e *Experiment) { e.Data = e.Rows[0].Data }},
	} {
		for i, change := range changes {
			e := onRanks()
			change(&e)
			if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("change %d: got %v, want %q", i, err, want)
			}
		}
	}
	var names []string
	for _, d := range Sets(onRanks().Rows) {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("data sets %v, want each once", names)
	}
}
