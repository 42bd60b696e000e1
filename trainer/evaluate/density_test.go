package main

import (
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// toyEvaluation measures a toy, a Gaussian of the plane, on the checkerboard.
func toyEvaluation(t *testing.T, model algo.Model, mean, sd [2]float64) *evaluation {
	t.Helper()
	backend := ref.New()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	run := &trained.Run{Path: "runs/a", Model: model, Vars: backend.NewVars()}
	m, s := exec.NewTensor(graph.T(graph.F32, 2)), exec.NewTensor(graph.T(graph.F32, 2))
	for i := range 2 {
		m.SetAt(i, mean[i])
		s.SetAt(i, math.Log(sd[i]))
	}
	for name, v := range map[string]*exec.Tensor{"gauss.mean": m, "gauss.log_sd": s} {
		if err := run.Vars.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	o := options{run: "runs/a", data: "checkerboard:test=300", split: "test", batch: 100, aisChains: 3, aisSteps: 4}
	return &evaluation{o: o, backend: backend, trained: run, takes: model.Takes(), show: progressbar.NewPhases(io.Discard)}
}

var plane = toy.Config{C: 1, H: 1, W: 2}

// The density is that of a Gaussian whose formula is known, at each cell, and what
// lies inside is known by the error function.
func TestDensity(t *testing.T) {
	mean, sd := [2]float64{0.5, 0.25}, [2]float64{0.5, 0.25}
	e := toyEvaluation(t, plane, mean, sd)
	e.picture = filepath.Join(t.TempDir(), "density.png")
	var r report
	if err := e.density(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if want := math.Log(2*math.Pi) + math.Log(sd[0]*sd[1]); !(math.Abs(r.LogZ.Value-want) <= 1e-6) || r.LogZ.SE != nil || r.LogZ.How != "by enumeration" {
		t.Errorf("log Z is %+v, want %v, exactly", r.LogZ, want)
	}
	var points []float32
	if _, err := e.each(t.Context(), e.own("points"), func(x []float32, _ []int64) error { points = append(points, x...); return nil }); err != nil {
		t.Fatal(err)
	}
	at := picture.Around(points, 0.25)
	within := func(lo, hi float64, k int) float64 {
		phi := func(x float64) float64 { return 0.5 * math.Erfc((mean[k]-x)/(sd[k]*math.Sqrt2)) }
		return phi(hi) - phi(lo)
	}
	if want := within(at.X0, at.X1, 0) * within(at.Y0, at.Y1, 1); !(math.Abs(r.Density.Inside-want) <= 1e-4) || want > 0.95 {
		t.Errorf("%v of it is shown, want %v", r.Density.Inside, want)
	}
	where := picture.Region{X0: -1, X1: 2, Y0: 0, Y1: 1}.Centres(70, 30) // more than are looked at at once
	logp, err := e.logDensity(t.Context(), where, r.LogZ.Value)
	if err != nil || len(logp) != 70*30 {
		t.Fatalf("%d values, %v", len(logp), err)
	}
	for i, got := range logp {
		want := 0.0
		for k := range 2 {
			z := (float64(where[2*i+k]) - mean[k]) / sd[k]
			want -= z*z/2 + math.Log(sd[k]) + math.Log(2*math.Pi)/2
		}
		if !(math.Abs(got-want) <= 1e-5*(1+math.Abs(want))) {
			t.Fatalf("log density %v at %v, want %v", got, where[2*i:2*i+2], want)
		}
	}
	f, err := os.Open(e.picture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	if m, err := png.DecodeConfig(f); err != nil || m.Width < 800 || m.Height < 400 {
		t.Errorf("a picture of %d×%d, %v", m.Width, m.Height, err)
	}
}

// A picture that cannot be written takes nothing with it that was measured.
func TestUndrawn(t *testing.T) {
	e := toyEvaluation(t, plane, [2]float64{}, [2]float64{1, 1})
	e.picture = filepath.Join(t.TempDir(), "gone", "density.png")
	r := report{noun: "points"}
	if err := e.density(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if e.undrawn == nil || !strings.Contains(e.undrawn.Error(), "density.png is not there: ") {
		t.Errorf("the end says %v", e.undrawn)
	}
	var text strings.Builder
	if err := r.writeTable(&text); err != nil || r.LogZ == nil || strings.Contains(text.String(), "beside the data") {
		t.Errorf("log Z %v, %v, and a table\n%s", r.LogZ, err, &text)
	}
}

// Cells are square, whatever the region.
func TestCells(t *testing.T) {
	for _, tt := range []struct {
		r    picture.Region
		w, h int
	}{
		{picture.Region{X0: 0, X1: 1, Y0: 0, Y1: 1}, densityCells, densityCells},
		{picture.Region{X0: 0, X1: 1, Y0: 0, Y1: 4}, densityCells / 4, densityCells},
		{picture.Region{X0: 0, X1: 1e6, Y0: 0, Y1: 1}, densityCells, 1},
	} {
		if m := cells(tt.r); m.W != tt.w || m.H != tt.h {
			t.Errorf("%v: %d×%d, want %d×%d", tt.r, m.W, m.H, tt.w, tt.h)
		}
	}
}

// many is a model of too many states: estimates are log 3 + {0, log 2, log 3}.
type many struct {
	toy.Config
	exact error
}

func (m many) LogZ(o algo.LogZOptions) (algo.Normaliser, error) {
	if o.Exact {
		return algo.Normaliser{}, m.exact
	}
	out := chain.Var("w", graph.T(graph.F64, o.Chains))
	out.Init = func(dst []float64, _ graph.Shape, _ philox.Name) {
		for i := range dst {
			dst[i] = math.Log(3 * float64(i+1))
		}
	}
	if !o.Back {
		return algo.Normaliser{Plan: chain.Plan{Vars: []nn.Variable{out}, Out: out.Name}}, nil
	}
	sign := out.Init // back, weights are of 1/Z: 1/3 of that of the other way
	out.Init = func(dst []float64, s graph.Shape, n philox.Name) {
		sign(dst, s, n)
		for i := range dst {
			dst[i] = -dst[i]
		}
	}
	from := chain.Var("from", graph.T(graph.F32, o.Chains, 1, 1, 2))
	return algo.Normaliser{Plan: chain.Plan{Vars: []nn.Variable{from, out}, Out: out.Name}}, nil
}

// Only too many states are a reason for an estimate, which has an error; what else
// is wrong is reported.
func TestLogZ(t *testing.T) {
	e := toyEvaluation(t, many{plane, algo.ErrTooMany}, [2]float64{}, [2]float64{1, 1})
	z, err := e.logZ(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// w = 3, 6, 9: mean 6, sd 3.
	if want, se := math.Log(6), 3/(math.Sqrt(3)*6); !(math.Abs(z.Value-want) <= 1e-12) || !(math.Abs(*z.SE-se) <= 1e-12) || !(math.Abs(*z.ESS-18*18.0/126) <= 1e-12) {
		t.Errorf("log Z %v ± %v of %v, want %v ± %v", z.Value, *z.SE, *z.ESS, want, se)
	}
	// Back, w = 1/3, 1/6, 1/9.
	if want := "1.79176 ± 0.29, by annealed importance sampling, 3 chains of 4 steps, 2.571 of them effective; " +
		"1.59109 ± 0.33, by 3 chains that begin at the data and go back, 2.469 of them effective"; z.String() != want {
		t.Errorf("%q, want %q", z, want)
	}
	if more := z.missed(); more != 0 {
		t.Errorf("%v nats are missed of an estimate from above that is below", more)
	}
	for back, want := range map[float64]float64{1.9: 0, 3.9: 0, 4.2: 4.2 - z.Value} { // the errors are 0.44 together
		more := *z
		more.Back = &logZ{Value: back, SE: z.Back.SE}
		if got := more.missed(); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("back %v: %v nats are missed, want %v", back, got, want)
		}
	}
	if more := (logZ{Value: 1, Back: &logZ{Value: 9, SE: z.SE}}).missed(); more != 0 {
		t.Errorf("%v nats are missed by one chain, whose error nobody knows", more)
	}
	if again, err := e.logZ(t.Context()); again != z || err != nil {
		t.Errorf("the normaliser is computed twice (%v)", err)
	}
	broken := errors.New("the weights are broken")
	if _, err := toyEvaluation(t, many{plane, broken}, [2]float64{}, [2]float64{1, 1}).logZ(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	one := toyEvaluation(t, many{plane, algo.ErrTooMany}, [2]float64{}, [2]float64{1, 1})
	one.o.aisChains = 1
	if z, err := one.logZ(t.Context()); err != nil || z.SE != nil || strings.Contains(z.String(), "±") {
		t.Errorf("one chain has no error to be told: %+v, %v", z, err)
	}
}

// diverged says whether evaluate --json tells other programs, who need not read its words,
// that an error is of numbers that are not finite; to people it tells nothing more.
func diverged(t *testing.T, e *evaluation, err error) bool {
	t.Helper()
	var table, object strings.Builder
	e.o.json = false
	failed := e.tellDiverged(err, &table)
	e.o.json = true
	failed = errors.Join(failed, e.tellDiverged(err, &object))
	if failed != nil || table.Len() > 0 {
		t.Errorf("%q, %v", table.String(), failed)
	}
	var fields struct{ Diverged string }
	if object.Len() == 0 {
		return false
	}
	if bad := json.Unmarshal([]byte(object.String()), &fields); bad != nil || fields.Diverged != err.Error() {
		t.Errorf("%s: %v, want %q", &object, bad, err)
	}
	return true
}

// A likelihood is −⟨E⟩ − log Z, and one that is no number is an error.
func TestLikelihood(t *testing.T) {
	mean, sd := [2]float64{0.5, 0.5}, [2]float64{0.4, 0.3}
	e := toyEvaluation(t, plane, mean, sd)
	var r report
	if err := e.likelihood(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	_, err := e.each(t.Context(), e.own("points"), func(x []float32, _ []int64) error {
		for i, v := range x {
			z := (float64(v) - mean[i%2]) / sd[i%2]
			sum -= z*z/2 + math.Log(sd[i%2]) + math.Log(2*math.Pi)/2
			n++
		}
		return nil
	})
	if want := sum / float64(n/2); err != nil || n != 600 || !(math.Abs(*r.LL-want) <= 1e-5) {
		t.Errorf("log-likelihood %v, want %v (%d values, %v)", *r.LL, want, n, err)
	}
	e = toyEvaluation(t, plane, [2]float64{math.NaN(), 0}, sd)
	err = e.likelihood(t.Context(), &r)
	if err == nil || !strings.HasPrefix(err.Error(), "training diverged: the mean energy of 300 points of checkerboard:test=300/test is NaN") {
		t.Errorf("diverged: %v", err)
	}
	if told := diverged(t, e, err); !told {
		t.Errorf("%v is no divergence", err)
	}
	if told := diverged(t, e, errors.New("training diverged: so it was typed")); told {
		t.Error("an error is taken for a divergence by its words")
	}
}

// What is named and cannot be had is said, and the others go on; of all only what
// the model has at little cost.
func TestChosen(t *testing.T) {
	for _, tt := range []struct {
		measures, picture string
		want              string // names, or the end of an error
		lacking           string // the end of what is said
	}{
		{"all", "", "energy ll density", ""},
		{"all", noPicture, "energy ll", ""},
		{"ll,energy", "", "energy ll", ""},
		{"all,ll", "", "energy ll density", ""},
		{"rmse", "", "--measures rmse of runs/a, a run of --algo toy: its models give no reconstructions", ""},
		{"ll,fisher", "", "ll", "--algo toy: its models do not have the Fisher divergence in closed form"},
		{"rmse,is", "", "its models give no reconstructions; --measures is of runs/a, a run of --algo toy: it is of pictures, and its samples are points", ""},
		{"density", noPicture, "it is a picture, and --picture is none", ""},
		{"probe", "", "--measures probe of runs/a, a run of --algo toy: checkerboard:test=300 has no classes", ""},
		{"all,probe", "", "energy ll density", "has no classes"},
	} {
		e := toyEvaluation(t, plane, [2]float64{}, [2]float64{1, 1})
		e.trained.Settings.Algo = "toy"
		e.o.measures, e.o.picture = tt.measures, tt.picture
		all, lacking, err := e.chosen()
		var got []string
		for _, m := range all {
			got = append(got, m.name)
		}
		if text := strings.Join(got, " "); err == nil && text != tt.want || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.measures, text, err, tt.want)
		}
		if said := strings.Join(lacking, "; "); (said == "") != (tt.lacking == "") || !strings.HasSuffix(said, tt.lacking) {
			t.Errorf("%s: it says %q, want %q", tt.measures, said, tt.lacking)
		}
	}
}
