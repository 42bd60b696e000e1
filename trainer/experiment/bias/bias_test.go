package bias

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ebtrain/data/dataset"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/experiment/batch"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/method/bism"
)

// tiny is a study of 2 visible and 4 hidden units.
func tiny(t *testing.T, rate float64) *study {
	t.Helper()
	const samples, seed = 20, 3
	src, err := dataset.Open("checkerboard", "train")
	if err != nil {
		t.Fatal(err)
	}
	p, err := bism.Method().Preset("bism-board-dsm")
	if err != nil {
		t.Fatal(err)
	}
	cfg := *p.Config.Clone().(*bism.Config)
	if err := cfg.Fit(src.Schema()); err != nil {
		t.Fatal(err)
	}
	cfg.InnerLR = rate
	x, err := batch.First(t.Context(), src, cfg.Model().Takes().Range, samples, seed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStudy(cfg, ref.New(), x, samples, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *study) at(t *testing.T, steps, unroll int) (grad []float64, upper float64) {
	t.Helper()
	phi, err := s.descend(t.Context(), s.origin(), steps)
	if err != nil {
		t.Fatal(err)
	}
	grad, upper, err = s.hypergradient(t.Context(), phi, unroll)
	if err != nil {
		t.Fatal(err)
	}
	return grad, upper
}

// TestSteps: steps that are taken, and steps that are unrolled, lead to the same
// φ, so to the same J, however they are divided; the gradients differ.
func TestSteps(t *testing.T) {
	s := tiny(t, 0.05)
	g0, want := s.at(t, 23, 0)
	g8, got := s.at(t, 15, 8)
	if _, before := s.at(t, 0, 0); math.Abs(want-before) < 1e-3*math.Abs(want) {
		t.Errorf("23 steps do not change J: %v, %v", before, want)
	}
	if !(math.Abs(got-want) <= 1e-5*math.Abs(want)) {
		t.Errorf("J after 23 steps is %v, after 15 and 8 unrolled %v", want, got)
	}
	if d := floats.Distance(g0, g8, 2); d < 1e-3*floats.Norm(g0, 2) {
		t.Errorf("unrolling 8 steps changes the gradient by %v of %v", d, floats.Norm(g0, 2))
	}
	once, err := s.descend(t.Context(), s.origin(), 23)
	if err != nil {
		t.Fatal(err)
	}
	half, err := s.descend(t.Context(), s.origin(), 20)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := s.descend(t.Context(), half, 3)
	if err != nil {
		t.Fatal(err)
	}
	if d := distance(once, twice); d > 1e-6 {
		t.Errorf("20 and 3 steps are %v from 23", d)
	}
	if d := distance(once, half); d == 0 {
		t.Error("3 steps lead nowhere")
	}
}

// TestGradient compares the hypergradient with central differences of J, φ⁰ kept.
func TestGradient(t *testing.T) {
	s := tiny(t, 0.05)
	phi, err := s.descend(t.Context(), s.origin(), 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3} {
		grad, _, err := s.hypergradient(t.Context(), phi, n)
		if err != nil {
			t.Fatal(err)
		}
		d := make([]float64, len(grad))
		philox.Name{Seed: 5, Purpose: philox.Testing}.Normal(d)
		const h = 2e-3
		slope := (s.moved(t, phi, n, d, h) - s.moved(t, phi, n, d, -h)) / (2 * h)
		if want := floats.Dot(grad, d); !(math.Abs(slope-want) <= 2e-3*math.Abs(want)) {
			t.Errorf("N = %d: slope %v, gradient %v", n, slope, want)
		}
	}
}

// moved is J at θ + h·d.
func (s *study) moved(t *testing.T, phi point, n int, d []float64, h float64) float64 {
	t.Helper()
	there := *s
	there.start = map[string]*exec.Tensor{}
	i := 0
	for _, name := range s.theta {
		v := exec.NewTensor(s.start[name].Type)
		for j, x := range s.start[name].F32() {
			v.SetAt(j, float64(x)+h*d[i])
			i++
		}
		there.start[name] = v
	}
	_, upper, err := there.hypergradient(t.Context(), phi, n)
	if err != nil {
		t.Fatal(err)
	}
	return upper
}

// TestMeasure: the bias of g* is 0, that of others is not, and φ* is nearer after
// more steps. Steps that are too long are said to explode, and have no bias.
func TestMeasure(t *testing.T) {
	p := protocol{steps: 4, rate: 0.05, manySteps: 4, manyUnroll: 6, star: 40, unrolled: []int{0, 3, 6}}
	parts := 0
	tell := func(done, total int64) {
		if parts++; done != int64(parts) || total != 7 {
			t.Errorf("part %d of %d, want %d of 7", done, total, parts)
		}
	}
	s := tiny(t, p.rate)
	out, err := s.measure(t.Context(), p, tell)
	if err != nil || parts != 7 || len(out.Notes) > 0 || len(out.Curves[Curve]) != 3 {
		t.Fatalf("%+v, %v after %d parts", out, err, parts)
	}
	if out.Values["N=6"] != 0 || !(out.Values["N=0"] > out.Values["N=3"]) || !(out.Values["N=3"] > 0) || !(out.Values[Growth] < 4) {
		t.Errorf("values %v", out.Values)
	}
	near := p
	near.steps = 20
	parts = 0
	more, err := s.measure(t.Context(), near, tell)
	if err != nil || !(more.Values[Distance] < out.Values[Distance]) || !(more.Values[Distance] > 0) {
		t.Errorf("distances after 4 and 20 steps: %v and %v (%v)", out.Values[Distance], more.Values[Distance], err)
	}
	far, _ := s.at(t, near.manySteps, near.manyUnroll)
	g, _ := s.at(t, near.steps, 3)
	if want := floats.Distance(g, far, 2) / floats.Norm(far, 2); !(math.Abs(more.Values["N=3"]/want-1) <= 1e-6) {
		t.Errorf("the bias after 20 steps with 3 unrolled is %v, by its definition %v", more.Values["N=3"], want)
	}
	long := p
	long.rate, long.manyUnroll = 8, 20
	s = tiny(t, long.rate)
	out, err = s.measure(t.Context(), long, func(int64, int64) {})
	if err != nil || len(out.Notes) != 1 || !strings.HasPrefix(out.Notes[0], "steps of 8 explode: the gradient's length is ") || len(out.Curves) > 0 || out.Values["N=0"] != 0 {
		t.Errorf("steps of 8: %+v, %v", out, err)
	}
	s = tiny(t, 2.1) // whose gradient grows tenfold or so
	out, err = s.measure(t.Context(), long, func(int64, int64) {})
	if err != nil || !(out.Values[Growth] > explosion) || len(out.Notes) != 1 || len(out.Curves) > 0 {
		t.Errorf("steps of 2.1: %+v, %v", out, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ steps, rate, data, want string }{
		{"many", "1", "checkerboard", `--lower-steps "many": want a number of steps`},
		{"-1", "1", "checkerboard", `--lower-steps "-1"`},
		{"1", "0", "checkerboard", `--inner-lr "0": want a rate above 0`},
		{"1", "NaN", "checkerboard", `--inner-lr "NaN"`},
		{"1", "1", "nowhere", "nowhere"},
	} {
		in := plan.Computing{Row: plan.Row{Flags: map[string]string{FlagSteps: c.steps, FlagRate: c.rate}}, Data: c.data, Threads: 1}
		if _, err := Compute(t.Context(), in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
