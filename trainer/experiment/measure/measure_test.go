package measure

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/run/rundir"
)

const evaluation = `{"run":"a","step":6,"ll":0.31,"fisher":-5885.1,"posterior_gap":46,"rmse":"NaN","probe":0.9385,"nested":{"accuracy":0.9385,"raw":"x","yes":true,"no":false},
"energies":[{"of":"data","n":20,"mean":0.5},{"of":"noise","mean":"Inf"}],"none":null}`

func TestEvaluated(t *testing.T) {
	fields, err := ReadEvaluation([]byte(evaluation))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want float64
		err  string
	}{
		{"ll", 0.31, ""}, {"nested.accuracy", 0.9385, ""}, {"nested.yes", 1, ""}, {"nested.no", 0, ""}, {"energies.data.mean", 0.5, ""}, {"energies.noise.mean", math.Inf(1), ""},
		{"lll", 0, "evaluate --json has no field lll (it has energies, fisher, ll, nested, none, posterior_gap, probe, rmse, run, step)"},
		{"nested.acc", 0, "no field nested.acc"}, {"energies.samples.mean", 0, "no field energies.samples.mean"}, {"ll.x", 0, "no field ll.x"},
		{"none", 0, "no field none"}, {"nested.raw", 0, "field nested.raw of evaluate --json is x: want a number"}, {"run", 0, "field run of evaluate --json is a"},
		{"nested", 0, "want a number"},
	} {
		got, err := evaluated(c.path)(Evidence{Evaluation: fields})
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, %v; want %v, %q", c.path, got, err, c.want, c.err)
		}
	}
	if v, err := evaluated("rmse")(Evidence{Evaluation: fields}); err != nil || !math.IsNaN(v) {
		t.Errorf(`"NaN" is read as %v, %v`, v, err)
	}
	if _, err := evaluated("ll")(Evidence{}); err == nil {
		t.Error("a number without an evaluation")
	}
	for _, text := range []string{"", "null", "[1]", `{"a":1} {"a":2}`, "ll 0.3"} {
		if got, err := ReadEvaluation([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// run is a run of n logged steps, one in every.
func run(n, every int, loss func(step int64) float64) []rundir.Record {
	var records []rundir.Record
	for i := range n {
		step := int64(i * every)
		records = append(records, rundir.Record{Step: step, StepMS: float64(100 - i), Losses: map[string]float64{"upper": loss(step), "lower": 1}})
	}
	return records
}

func TestDiverged(t *testing.T) {
	for text, want := range map[string]bool{`{"diverged":"the mean energy is NaN"}` + "\n": true, evaluation: false, "training diverged: NaN": false, "": false} {
		if got := Diverged([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestLogged measures losses whose numbers can be said beforehand.
func TestLogged(t *testing.T) {
	falling := func(step int64) float64 { return 1000 - float64(step) }
	// up to 8,900 at step 500, then down to 46 from step 900 on
	hill := func(step int64) float64 {
		switch {
		case step < 400:
			return 100
		case step < 600:
			return 8900
		case step < 900:
			return 1000
		}
		return 46
	}
	spike := func(step int64) float64 {
		if step == 500 {
			return 1e9 // one value among many
		}
		return 100
	}
	for _, c := range []struct {
		name    string
		take    func([]Point) (float64, error)
		records []rundir.Record
		want    float64
	}{
		{"first", first, run(1000, 1, falling), 1000},
		{"last", last, run(1000, 1, falling), 50.5}, // median of 1 … 100
		{"near 400 steps", near(400), run(1000, 1, falling), 1000 - 399},
		{"near 400 steps, every tenth logged", near(400), run(100, 10, falling), 600}, // lines after 381, …, 421 steps; in the middle that of step 400
		{"largest rise of what falls", largestRise, run(1000, 1, falling), -100 / 950.5},
		{"largest rise of a hill", largestRise, run(1000, 1, hill), 88},
		{"largest rise of what is below 0", largestRise, run(1000, 1, func(step int64) float64 { return -falling(step) }), 100 / 150.5},
		{"near 400 steps, one value among many", near(400), run(1000, 1, func(step int64) float64 { return spike(step + 101) }), 100},
		{"peak of a hill", peak, run(1000, 1, hill), 8900},
		{"a spike is no peak", peak, run(1000, 1, spike), 100},
		{"decades", decades, run(1000, 1, hill), math.Log10(8900.0 / 46)},
		{"few lines", last, run(3, 1, falling), 998},
	} {
		got, err := logged("upper", c.take)(Evidence{Records: c.records})
		if err != nil || !(math.Abs(got-c.want) <= 1e-9*math.Abs(c.want)) {
			t.Errorf("%s: got %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	if got, err := stepTime(Evidence{Records: run(100, 1, falling)}); err != nil || got != 45.5 { // of 90 … 1
		t.Errorf("time of a step: %v, %v", got, err)
	}
	for name, c := range map[string]struct {
		take    func(Evidence) (float64, error)
		records []rundir.Record
		want    string
	}{
		"no such loss":         {logged("upperr", last), run(9, 1, falling), "metrics.jsonl has no loss upperr (it has [lower upper])"},
		"no lines":             {logged("upper", last), nil, "metrics.jsonl has no lines"},
		"no lines, time":       {stepTime, nil, "metrics.jsonl has no lines"},
		"too short":            {logged("upper", near(400)), run(399, 1, falling), "too few steps: it has 399, want 400"},
		"one line":             {logged("upper", largestRise), run(1, 1, falling), "too few steps"},
		"decades of negatives": {logged("upper", decades), run(100, 1, func(int64) float64 { return -1 }), "decades are of positive numbers"},
	} {
		if v, err := c.take(Evidence{Records: c.records}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, v, err, c.want)
		}
	}
}

// A median of windows says nothing of steps that are not there, and hides no NaN.
// What is lost of metrics.jsonl is no part of a number: what is last there may be of the
// middle of the run. Lines besides those that are due, as of a loss that jumped, are none that
// are lost.
func TestLost(t *testing.T) {
	records := run(5, 3, func(step int64) float64 { return float64(step) }) // 0, 3, 6, 9, 12
	besides := slices.Insert(slices.Clone(records), 2, rundir.Record{Step: 4})
	for _, c := range []struct {
		records      []rundir.Record
		steps, every int64
		want         string
	}{
		{records, 13, 3, ""}, {records, 15, 3, ""}, {besides, 15, 3, ""}, {nil, 0, 1, ""},
		{records, 16, 3, "it has 5 of 6"}, {records[:3], 15, 3, "it has 3 of 5"}, {slices.Delete(slices.Clone(records), 1, 2), 15, 3, "it has 4 of 5"}, {nil, 2, 1, "it has 0 of 2"},
	} {
		err := Lost(c.records, c.steps, c.every)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "metrics.jsonl has lost lines: "+c.want+": ") {
			t.Errorf("%d lines of %d steps, one in %d: %v, want %q", len(c.records), c.steps, c.every, err, c.want)
		}
	}
	e := Evidence{Records: records[:3], Lost: Lost(records[:3], 15, 3)}
	m, _ := Find("upper-last")
	if v, err := m.Of(e); !errors.Is(err, e.Lost) {
		t.Errorf("the loss at the end is %v, %v", v, err)
	}
	if _, err := Curve(e, "upper"); !errors.Is(err, e.Lost) {
		t.Errorf("its curve: %v", err)
	}
	e.Lost = nil
	if v, err := m.Of(e); err != nil || v != 6 {
		t.Errorf("of all lines: %v, %v", v, err)
	}
}

func TestCurve(t *testing.T) {
	points, err := Curve(Evidence{Records: run(1000, 1, func(step int64) float64 { return float64(step) })}, "upper")
	if err != nil || len(points) != 200 || points[0] != (Point{5, 2}) || points[199] != (Point{1000, 997}) {
		t.Errorf("%d points, %v … %v, %v", len(points), points[0], points[len(points)-1], err)
	}
	points, err = Curve(Evidence{Records: run(3, 1, func(step int64) float64 { return float64(step) })}, "upper")
	if err != nil || len(points) != 3 || points[2] != (Point{3, 2}) {
		t.Errorf("%v, %v", points, err)
	}
	one, _ := Find("upper-last")
	nan := run(100, 1, func(step int64) float64 {
		if step == 95 {
			return math.NaN()
		}
		return 1
	})
	if v, err := one.Of(Evidence{Records: nan}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("a loss of NaN at the end gives %v, %v", v, err)
	}
}

// Samples beside data: their number, and that of the floor; what is not there is an
// error.
func TestCompared(t *testing.T) {
	fields, err := ReadEvaluation([]byte(`{"quality":{"of":"kid","rows":[{"name":"frechet","title":"Fréchet distance","samples":12.5,"floor":0.5,"controls":{"noise":90}},{"name":"forward","samples":9,"floor":4,"controls":{"unigram":30,"N(0, I)":20}},{"name":"kid-classifier","samples":-0.1}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := Evidence{Evaluation: fields}
	for name, want := range map[string]float64{"frechet": 12.5, "frechet-floor": 0.5, "forward-unigram": 30, "forward-normal": 20} {
		m, ok := Find(name)
		if v, err := m.Of(e); !ok || err != nil || v != want {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, name := range []string{"kid-floor", "swd", "precision", "is"} {
		m, ok := Find(name)
		if v, err := m.Of(e); !ok || err == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
	if got := Asks("kid", "swd", "precision", "recall", "frechet"); got != "frechet,kid,swd,prdc" {
		t.Errorf("they ask for %s", got)
	}
	if e.Quality() == nil || (Evidence{}).Quality() != nil {
		t.Error("what is kept of the comparison")
	}
}

// The likelihood by chains from the data, whose log Z is 607 one way and 694 the other;
// where log Z is enumerated there is one.
func TestFromData(t *testing.T) {
	m, _ := Find("ll-back")
	for text, want := range map[string]float64{
		`{"ll":193,"log_z":{"value":607,"se":0.1,"back":{"value":694}}}`: 106,
		`{"ll":0.31,"log_z":{"value":2}}`:                                0.31,
	} {
		fields, err := ReadEvaluation([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := m.Of(Evidence{Evaluation: fields}); err != nil || !(math.Abs(v-want) <= 1e-12) {
			t.Errorf("%s: %v, %v; want %v", text, v, err, want)
		}
	}
	for _, text := range []string{`{"ll":1}`, `{"log_z":{"value":2}}`, `{"ll":1,"log_z":{"value":2,"back":{}}}`} {
		fields, err := ReadEvaluation([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := m.Of(Evidence{Evaluation: fields}); err == nil {
			t.Errorf("of %s: %v", text, v)
		}
	}
}

// Energies against each data set's have their own number; the best of a curve is its highest
// point; and what training cost is not said where some of it is not known.
func TestEnergies(t *testing.T) {
	fields, err := ReadEvaluation([]byte(`{"auroc":[{"against":"noise","value":0.1},{"against":"svhn","value":0.2},{"against":"celeba","value":0.3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e := Evidence{Evaluation: fields, Curves: map[string][]Point{"auroc-svhn": {{1, 0.5}, {2, 0.9}, {3, 0.7}}}, TrainCPU: 5}
	for name, want := range map[string]float64{"auroc-noise": 0.1, "auroc-svhn": 0.2, "auroc-celeba": 0.3, "auroc-svhn-best": 0.9, "cpu-s": 5} {
		m, _ := Find(name)
		if v, err := m.Of(e); v != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", name, v, err, want)
		}
	}
	m, _ := Find("auroc-noise-best")
	if v, err := m.Of(e); !errors.Is(err, ErrShort) {
		t.Errorf("the best of a run that ended before its first checkpoint is %v, %v", v, err)
	}
	e.TrainLost = true
	m, _ = Find("cpu-s")
	if v, err := m.Of(e); !errors.Is(err, ErrLost) {
		t.Errorf("a cost that is not known is %v, %v", v, err)
	}
}

func TestAsks(t *testing.T) {
	for want, names := range map[string][]string{"": {"cpu-s", "upper-last"}, "ll,fisher": {"fisher", "step-ms", "ll"}, "probe": {"probe", "probe-raw"}} {
		if got := Asks(names...); got != want {
			t.Errorf("%v ask for %q, want %q", names, got, want)
		}
	}
}

// The loss of a method of one level stands for the upper one.
func TestOneLevel(t *testing.T) {
	records := []rundir.Record{{Losses: map[string]float64{"loss": 7}}}
	m, _ := Find("upper-first")
	if v, err := m.Of(Evidence{Records: records}); v != 7 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := Curve(Evidence{Records: records}, "lower"); err == nil {
		t.Error("it has a lower loss")
	}
}

func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || m.Title == "" {
			t.Errorf("measure %q twice, or without title", m.Name)
		}
		seen[m.Name] = true
		if v, err := m.Of(Evidence{}); err == nil && m.Name != "cpu-s" {
			t.Errorf("%s of nothing is %v", m.Name, v)
		}
	}
	fields, err := ReadEvaluation([]byte(evaluation))
	if err != nil {
		t.Fatal(err)
	}
	e := Evidence{Evaluation: fields, TrainCPU: 3, SampleWall: 2}
	for name, want := range map[string]float64{"ll": 0.31, "fisher": -5885.1, "gap": 46, "probe": 93.85, "cpu-s": 3, "sample-s": 2} {
		m, ok := Find(name)
		if v, err := m.Of(e); !ok || err != nil || !(math.Abs(v-want) <= 1e-12) {
			t.Errorf("%s: %v, %v; want %v", name, v, err, want)
		}
	}
	e.SampleWall = math.Inf(1)
	for _, name := range []string{"rmse", "sample-s"} {
		m, _ := Find(name)
		if v, err := m.Of(e); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s is %v, %v", name, v, err)
		}
	}
	// Of the last step is what was asked of it; where it was chosen there is one answer.
	m, _ := Find("fisher-last")
	for want, last := range map[float64]map[string]any{-5885.1: nil, 7: {"fisher": 7.0}} {
		e.Last = last
		if v, err := m.Of(e); v != want || err != nil {
			t.Errorf("the last step has %v, %v; want %v", v, err, want)
		}
	}
}
