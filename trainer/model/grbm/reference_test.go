package grbm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// toy is a machine in plain Go, computed from its energy alone: sums over all
// states, integrals, and differences.
type toy struct {
	s, w, b, c []float64 // w (visible, hidden), row-major
}

func newToy(visible, hidden int) toy {
	scaled := func(stream uint32, n int, by float64) []float64 {
		x := ddptest.Noise(stream, n)
		for i := range x {
			x[i] *= by
		}
		return x
	}
	return toy{s: scaled(1, visible, 0.3), w: scaled(2, visible*hidden, 0.9), b: scaled(3, visible, 0.7), c: scaled(4, hidden, 0.8)}
}

func (y toy) size() Size { return Size{Visible: len(y.b), Hidden: len(y.c)} }

// vars are its variables, in float64.
func (y toy) vars(t *testing.T) exec.Vars {
	t.Helper()
	vars, z := ddptest.NewVars(), y.size()
	for _, v := range []struct {
		name string
		s    graph.Shape
		x    []float64
	}{
		{"model.s", graph.D(z.Visible), y.s}, {"model.w", graph.D(z.Visible, z.Hidden), y.w},
		{"model.b", graph.D(z.Visible), y.b}, {"model.c", graph.D(z.Hidden), y.c},
	} {
		if err := vars.Set(v.name, ddptest.Tensor(graph.Type{DType: graph.F64, Shape: v.s}, v.x)); err != nil {
			t.Fatal(err)
		}
	}
	return vars
}

// machine is the one under test, of pictures of one row.
func (y toy) machine() Machine {
	z := y.size()
	return Machine{Size: z, Picture: graph.D(1, 1, z.Visible), dtype: graph.F64}
}

// states are all states of the hidden units.
func (y toy) states() [][]float64 {
	all := make([][]float64, 1<<len(y.c))
	for i := range all {
		for j := range y.c {
			all[i] = append(all[i], float64(i>>j&1))
		}
	}
	return all
}

func (y toy) energy(v, h []float64) float64 {
	e := 0.0
	for i := range v {
		d := (v[i] - y.b[i]) / math.Exp(y.s[i])
		e += d * d / 2
		for j := range h {
			e -= v[i] * y.w[i*len(h)+j] * h[j]
		}
	}
	for j := range h {
		e -= y.c[j] * h[j]
	}
	return e
}

// free is −log Σ exp(−E(v,h)) over all states.
func (y toy) free(v []float64) float64 {
	sum := 0.0
	for _, h := range y.states() {
		sum += math.Exp(-y.energy(v, h))
	}
	return -math.Log(sum)
}

// posterior is p(h|v) of each state.
func (y toy) posterior(v []float64) []float64 {
	var p []float64
	for _, h := range y.states() {
		p = append(p, math.Exp(y.free(v)-y.energy(v, h)))
	}
	return p
}

// bump is f with v[i] moved by d.
func bump(f func([]float64) float64, v []float64, i int, d float64) float64 {
	old := v[i]
	defer func() { v[i] = old }()
	v[i] += d
	return f(v)
}

// score is −∇F by central differences.
func (y toy) score(v []float64) []float64 {
	const d = 1e-5
	s := make([]float64, len(v))
	for i := range v {
		s[i] = (bump(y.free, v, i, -d) - bump(y.free, v, i, d)) / (2 * d)
	}
	return s
}

// fisher is ½‖∇F‖² − ΔF by differences.
func (y toy) fisher(v []float64) float64 {
	const d = 1e-3
	loss := 0.0
	for _, s := range y.score(v) {
		loss += s * s / 2
	}
	for i := range v { // the fourth-order second difference
		loss -= (-bump(y.free, v, i, -2*d) + 16*bump(y.free, v, i, -d) - 30*y.free(v) + 16*bump(y.free, v, i, d) - bump(y.free, v, i, 2*d)) / (12 * d * d)
	}
	return loss
}

// logZ integrates exp(−F) over a grid, for one or two visible units.
func (y toy) logZ() float64 {
	const cells, far = 500, 14.0
	const step = 2 * far / cells
	v := make([]float64, len(y.b))
	sum := 0.0
	var walk func(i int)
	walk = func(i int) {
		if i == len(v) {
			sum += math.Exp(-y.free(v))
			return
		}
		for k := range cells + 1 {
			v[i] = -far + step*float64(k)
			walk(i + 1)
		}
	}
	walk(0)
	return math.Log(sum) + float64(len(v))*math.Log(step)
}

// moments are E[v], E[vv] and E[h] of the machine, from p(h) of each state.
func (y toy) moments() (v, vv, h []float64) {
	v, vv, h = make([]float64, len(y.b)), make([]float64, len(y.b)), make([]float64, len(y.c))
	total := 0.0
	for _, state := range y.states() {
		mean, weight := y.given(state)
		total += weight
		for i, m := range mean {
			v[i] += weight * m
			vv[i] += weight * (m*m + math.Exp(2*y.s[i]))
		}
		for j, x := range state {
			h[j] += weight * x
		}
	}
	for _, x := range [][]float64{v, vv, h} {
		for i := range x {
			x[i] /= total
		}
	}
	return v, vv, h
}

// given is E[v|h], and p(h) but for a constant: −E is a square in v, whose top is
// at the mean.
func (y toy) given(h []float64) (mean []float64, weight float64) {
	mean = make([]float64, len(y.b))
	for i := range mean {
		mean[i] = y.b[i]
		for j := range h {
			mean[i] += math.Exp(2*y.s[i]) * y.w[i*len(h)+j] * h[j]
		}
	}
	return mean, math.Exp(-y.energy(mean, h))
}

// apply runs f, a function of v (n, Visible), on the machine's parameters.
func (y toy) apply(t *testing.T, v []float64, f func(c *nn.Context, p Params, v graph.ID) graph.ID) []float64 {
	t.Helper()
	c, p := y.machine().begin()
	x := c.Input("v", graph.T(graph.F64, len(v)/len(y.b), len(y.b)))
	c.Output("y", f(c, p, x))
	return runGraph(t, c, y.vars(t), ddptest.Values{"v": v})["y"]
}

func runGraph(t *testing.T, c *nn.Context, vars exec.Vars, in ddptest.Values) ddptest.Values {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if err := ddptest.Near(got, want, tol); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
