package grbm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// normalised is log Z as programs compute it: the logarithm of the mean of the
// exponentials of the weights.
func (y toy) normalised(t *testing.T, o algo.LogZOptions) float64 {
	t.Helper()
	n, err := y.machine().LogZ(o)
	if n.Exact != o.Exact {
		t.Errorf("exact: %v, asked for %v", n.Exact, o.Exact)
	}
	return logMeanExp(y.run(t, n.Plan, err))
}

func logMeanExp(x []float64) float64 {
	sum := 0.0
	for _, w := range x {
		sum += math.Exp(w-x[0]) / float64(len(x))
	}
	return x[0] + math.Log(sum)
}

// Enumeration is the integral of exp(−F) over the plane.
func TestEnumerationAgainstIntegral(t *testing.T) {
	for _, z := range []Size{{1, 1}, {1, 4}, {2, 3}} {
		y := newToy(z.Visible, z.Hidden)
		got := y.normalised(t, algo.LogZOptions{Exact: true})
		near(t, fmt.Sprint(z), []float64{got}, []float64{y.logZ()}, 1e-9)
	}
}

// More hidden units than one transition holds: the blocks add up.
func TestEnumerationInBlocks(t *testing.T) {
	y := newToy(2, blockUnits+2)
	sum := 0.0
	for _, h := range y.states() {
		_, weight := y.given(h)
		sum += weight
	}
	want := math.Log(sum) + math.Log(2*math.Pi) + y.s[0] + y.s[1]
	n, err := y.machine().LogZ(algo.LogZOptions{Exact: true})
	near(t, "log Z", y.run(t, n.Plan, err), []float64{want}, 1e-12)
	if got := n.Plan.Stages[0].Times; got != 4 {
		t.Errorf("%d transitions, want 4", got)
	}
}

// Weights too large for exp are no trouble.
func TestEnumerationOfLargeWeights(t *testing.T) {
	y := newToy(2, 3)
	for j := range y.c {
		y.c[j] += 1000
	}
	// All units but for a share of e⁻¹⁰⁰⁰ are on.
	h := []float64{1, 1, 1}
	mean, _ := y.given(h)
	want := -y.energy(mean, h) + math.Log(2*math.Pi) + y.s[0] + y.s[1]
	near(t, "log Z", []float64{y.normalised(t, algo.LogZOptions{Exact: true})}, []float64{want}, 1e-13)
}

// Annealed importance sampling is right to 0.02 of a nat with four hidden units.
func TestAnnealingAgainstEnumeration(t *testing.T) {
	y := newToy(3, 4)
	exact := y.normalised(t, algo.LogZOptions{Exact: true})
	got := y.normalised(t, algo.LogZOptions{Chains: 1000, Steps: 100})
	if !(math.Abs(got-exact) < 0.02) {
		t.Errorf("log Z is %v by annealing, %v by enumeration", got, exact)
	}
	// One step is plain importance sampling: worse, so the above is no accident.
	rough := y.normalised(t, algo.LogZOptions{Chains: 1000, Steps: 1})
	if math.Abs(rough-exact) < 2*math.Abs(got-exact) {
		t.Errorf("one step gives %v, exact is %v, a hundred steps %v", rough, exact, got)
	}
}

// A machine without couplings is its own base: every weight is its log Z.
func TestAnnealingOfTheBase(t *testing.T) {
	y := newToy(3, 4)
	for i := range y.w {
		y.w[i] = 0
	}
	for j := range y.c {
		y.c[j] = 0
	}
	n, err := y.machine().LogZ(algo.LogZOptions{Chains: 3, Steps: 4})
	want := 4*math.Ln2 + 1.5*math.Log(2*math.Pi) + y.s[0] + y.s[1] + y.s[2]
	near(t, "log weights", y.run(t, n.Plan, err), []float64{want, want, want}, 1e-14)
}

// Each chain's weight is that of loops with the same draws.
func TestAnnealingAgainstLoops(t *testing.T) {
	y := newToy(3, 4)
	const chains, steps = 3, 4
	at := func(beta float64, v []float64) float64 {
		z := y
		z.w, z.c = make([]float64, len(y.w)), make([]float64, len(y.c))
		for i, w := range y.w {
			z.w[i] = beta * w
		}
		for j, c := range y.c {
			z.c[j] = beta * c
		}
		return z.free(v)
	}
	var want []float64
	for i := range chains {
		v := y.visible(make([]float64, 4), named(0, i, 0, 3, philox.Name.Normal))
		logw := 4*math.Ln2 + 1.5*math.Log(2*math.Pi) + y.s[0] + y.s[1] + y.s[2]
		for k := range steps {
			old, beta := float64(k)/steps, float64(k+1)/steps
			logw += at(old, v) - at(beta, v)
			h := y.hidden(v, named(k+1, i, 0, 4, philox.Name.Uniform), beta)
			v = y.visible(h, named(k+1, i, 1, 3, philox.Name.Normal))
		}
		want = append(want, logw)
	}
	n, err := y.machine().LogZ(algo.LogZOptions{Chains: chains, Steps: steps})
	near(t, "log weights", y.run(t, n.Plan, err), want, 1e-12)
}

// back is log Z from pictures back to the base.
func (y toy) back(t *testing.T, from []float64, steps int) float64 {
	t.Helper()
	n, err := y.machine().LogZ(algo.LogZOptions{Chains: len(from) / y.size().Visible, Steps: steps, Back: true})
	if err == nil {
		given := n.Plan.Vars[0]
		given.Init = func(dst []float64, _ graph.Shape, _ philox.Name) { copy(dst, from) }
		n.Plan.Vars = append([]nn.Variable{given}, n.Plan.Vars[1:]...)
	}
	return -logMeanExp(y.run(t, n.Plan, err))
}

// Both ways lead to the same log Z where chains go everywhere.
func TestAnnealingBack(t *testing.T) {
	y := newToy(3, 4)
	exact := y.normalised(t, algo.LogZOptions{Exact: true})
	from := make([]float64, 1000*3)
	if got := y.back(t, from, 100); !(math.Abs(got-exact) < 0.02) {
		t.Errorf("log Z is %v by annealing back, %v by enumeration", got, exact)
	}
	got, rough := y.back(t, from, 100), y.back(t, from, 1)
	if math.Abs(rough-exact) < 2*math.Abs(got-exact) {
		t.Errorf("one step back gives %v, exact is %v, a hundred steps %v", rough, exact, got)
	}
}

// Chains do not find a mode that only appears late, with most of the mass; those that
// begin there say so.
func TestAnnealingMissesAMode(t *testing.T) {
	y := newToy(1, 1)
	y.s[0], y.b[0], y.w[0], y.c[0] = 0, 0, 12, -70 // the mode of h = 1 is at 12, with e² times the mass of the other
	exact := y.normalised(t, algo.LogZOptions{Exact: true})
	there := make([]float64, 200)
	for i := range there {
		there[i] = 12
	}
	forth, back := y.normalised(t, algo.LogZOptions{Chains: 200, Steps: 100}), y.back(t, there, 100)
	if !(forth < exact-1.5) || !(back > exact+1) {
		t.Errorf("log Z is %v, %v by chains that miss a mode, %v by those that begin there", exact, forth, back)
	}
}

// Machines of float32, as they are trained, on the backend that trains them.
func TestLogZOfFloat32(t *testing.T) {
	y := newToy(3, 4)
	exact := y.normalised(t, algo.LogZOptions{Exact: true})
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	}()
	vars, wide := backend.NewVars(), y.vars(t)
	for _, name := range wide.Names() {
		x, err := wide.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := vars.Set(name, ddptest.Tensor(graph.Type{DType: graph.F32, Shape: x.Type.Shape}, ddptest.Numbers(x))); err != nil {
			t.Fatal(err)
		}
	}
	m := y.machine()
	m.dtype = 0
	for _, tt := range []struct {
		o   algo.LogZOptions
		tol float64
	}{{algo.LogZOptions{Exact: true}, 1e-6}, {algo.LogZOptions{Chains: 1000, Steps: 100}, 0.02}} {
		n, err := m.LogZ(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		x, err := chain.Run(t.Context(), backend, vars, n.Plan, testSeed)
		if err != nil {
			t.Fatal(err)
		}
		if got := logMeanExp(ddptest.Numbers(x)); !(math.Abs(got-exact) < tt.tol) {
			t.Errorf("%+v: %v, want %v", tt.o, got, exact)
		}
	}
}

func TestLogZRefuses(t *testing.T) {
	for _, tt := range []struct {
		hidden int
		o      algo.LogZOptions
		want   string
	}{
		{4, algo.LogZOptions{Chains: 0, Steps: 10}, "nothing to average with 0 chains of 10 steps: want at least 1 of both"},
		{4, algo.LogZOptions{Chains: 10, Steps: 0}, "nothing to average with 10 chains of 0 steps"},
		{4, algo.LogZOptions{Chains: -1, Steps: 5}, "nothing to average"},
		{21, algo.LogZOptions{Exact: true}, "log Z of 21 hidden units cannot be had by enumeration, which takes at most 20"},
		{400, algo.LogZOptions{Exact: true}, "log Z of 400 hidden units cannot be had by enumeration, which takes at most 20"},
	} {
		_, err := Machine{Size: Size{2, tt.hidden}}.LogZ(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, algo.ErrTooMany) != tt.o.Exact {
			t.Errorf("%+v: got %v, want %q, which is ErrTooMany only of an enumeration", tt.o, err, tt.want)
		}
	}
	if z, err := (Machine{Size: Size{2, 20}}).LogZ(algo.LogZOptions{Exact: true}); err != nil || z.Plan.Transitions() != 1<<8 {
		t.Errorf("20 hidden units: %v, %d transitions", err, z.Plan.Transitions())
	}
}
