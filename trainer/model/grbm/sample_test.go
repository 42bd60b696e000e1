package grbm

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

const testSeed = 5

// run is the result of a plan.
func (y toy) run(t *testing.T, p chain.Plan, err error) []float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	x, err := chain.Run(t.Context(), ref.New(), y.vars(t), p, testSeed)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// named are draws of a chain.
func named(step, sample, sub, n int, fill func(philox.Name, []float64)) []float64 {
	x := make([]float64, n)
	fill(philox.Name{Seed: testSeed, Purpose: philox.Chain, Sub: uint16(sub), Step: uint32(step), Sample: uint32(sample)}, x)
	return x
}

// hidden is h ~ p(h|v) in loops, with all logits times beta.
func (y toy) hidden(v, uniform []float64, beta float64) []float64 {
	h := make([]float64, len(y.c))
	for j := range h {
		l := y.c[j]
		for i := range v {
			l += v[i] * y.w[i*len(h)+j]
		}
		if uniform[j] < 1/(1+math.Exp(-beta*l)) {
			h[j] = beta // beta·h, as the visible units see it
		}
	}
	return h
}

// visible is v ~ p(v|h) in loops.
func (y toy) visible(h, normal []float64) []float64 {
	v, _ := y.given(h)
	for i := range v {
		v[i] += math.Exp(y.s[i]) * normal[i]
	}
	return v
}

// A sampler's result is that of loops with the same draws, sample by sample: after one
// sweep, which shows where chains begin, and after several. There are enough samples for
// some of the hidden units to be near the edge.
func TestSampleAgainstLoops(t *testing.T) {
	const n = 50
	y := newToy(6, 4)
	m := y.machine()
	for _, sweeps := range []int{1, 5} {
		var means, draws []float64
		for i := range n {
			v := named(0, i, 0, 6, philox.Name.Uniform)
			for k := 1; k <= sweeps; k++ {
				h := y.hidden(v, named(k, i, 0, 4, philox.Name.Uniform), 1)
				if k == sweeps {
					mean, _ := y.given(h)
					means = append(means, mean...)
				}
				v = y.visible(h, named(k, i, 1, 6, philox.Name.Normal))
			}
			draws = append(draws, v...)
		}
		m.Picture = graph.D(1, 2, 3)
		plan, err := m.gibbs(n, sweeps, m.points())
		near(t, "samples", y.run(t, plan, err), means, 1e-12)
		if got := plan.Vars[1].Type.Shape; got != graph.D(n, 1, 2, 3) {
			t.Errorf("samples are %v", got)
		}
		plan, err = m.gibbs(n-1, sweeps, false)
		near(t, "fewer samples", y.run(t, plan, err), means[:(n-1)*6], 1e-12)
		m.Picture = graph.D(1, 1, 6)
		plan, err = m.gibbs(n, sweeps, m.points())
		near(t, "points", y.run(t, plan, err), draws, 1e-12)
	}
	plan, err := m.Sample(nn.Eval, n)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, s := range plan.Stages {
		total += s.Times
	}
	if total != 1+1000 {
		t.Errorf("%d transitions, want the start and 1,000 sweeps", total)
	}
}

// Points are 1×1×d; what has several channels or rows is a picture.
func TestPoints(t *testing.T) {
	for shape, want := range map[graph.Shape]bool{graph.D(1, 1, 6): true, graph.D(1, 2, 3): false, graph.D(2, 1, 3): false} {
		if got := (Machine{Picture: shape}).points(); got != want {
			t.Errorf("%v are points: %v", shape, got)
		}
	}
}

// Draws of the model have the free energies of exact ones, h from all its states and v of
// it. Means of v, of which papers make pictures, have none of the noise and lie below all.
func TestFreeEnergiesOfDraws(t *testing.T) {
	const n, sweeps = 200, 20
	y := newToy(64, 4)
	for i := range y.w {
		y.w[i] *= 0.1 // the states of h are near enough for few sweeps
	}
	m := y.machine()
	m.Picture = graph.D(1, 8, 8)
	exact := y.exact(n)
	for _, tt := range []struct {
		name        string
		plan        func(nn.Mode, int) (chain.Plan, error)
		least, most float64 // of the AUROC, whose standard error is 0.03 where it is 0.5
	}{{"draws", m.SampleDrawn, 0.4, 0.6}, {"means", m.Sample, 0, 0.01}} {
		plan, err := tt.plan(nn.Eval, n)
		if err != nil {
			t.Fatal(err)
		}
		plan.Stages[1].Times = sweeps
		var told float64
		for v := range slices.Chunk(y.run(t, plan, nil), 64) {
			free := y.free(v)
			for _, e := range exact {
				if e < free {
					told += 1.0 / n / n
				}
			}
		}
		if told < tt.least || told > tt.most {
			t.Errorf("%s are above exact draws with probability %.4f, want from %v to %v", tt.name, told, tt.least, tt.most)
		}
	}
}

// exact are the free energies of n draws from the machine: as many of each state of h as it
// has a share in the density, and v of each.
func (y toy) exact(n int) (free []float64) {
	var total float64
	for _, h := range y.states() {
		_, weight := y.given(h)
		total += weight
	}
	noise, below := ddptest.Noise(6, n*len(y.b)), 0.0
	for _, h := range y.states() {
		_, weight := y.given(h)
		below += weight / total
		for float64(len(free))+0.5 < below*float64(n) {
			free = append(free, y.free(y.visible(h, noise[len(free)*len(y.b):][:len(y.b)])))
		}
	}
	return free
}

// What is wrong with a stage is the plan's error.
func TestSampleReportsErrors(t *testing.T) {
	m := newToy(6, 4).machine()
	m.Picture = graph.D(1, 2, 2) // of four values, not six
	if _, err := m.Sample(nn.Eval, 3); err == nil || !strings.Contains(err.Error(), "reshape") {
		t.Errorf("got %v", err)
	}
}

// Gibbs sweeps from the uniform distribution forget it: the moments of v, its
// square and h are those of the enumerated machine, within four standard errors.
func TestStationaryMoments(t *testing.T) {
	y := newToy(3, 4)
	const n, times = 4000, 40
	v := chain.Var("v", graph.T(graph.F64, n, 3))
	h := chain.Var("h", graph.T(graph.F64, n, 4))
	s := stages{machine: y.machine()}
	s.add("begin", 1, nil, func(c *nn.Context, g Gibbs) {
		c.Assign(c.Var(v.Name, v.Type), c.Draw(g.Key, graph.Uniform, philox.Chain, 0, v.Type))
	})
	s.add("gibbs", times, nil, func(c *nn.Context, g Gibbs) {
		old := c.Var(v.Name, v.Type)
		last := g.Hidden(c, 0, old)
		c.Assign(c.Var(h.Name, h.Type), last)
		c.Assign(old, g.Visible(c, 1, last))
	})
	vars := []nn.Variable{v, h}
	at := y.run(t, chain.Plan{Vars: vars, Stages: s.list, Out: v.Name}, s.err)
	on := y.run(t, chain.Plan{Vars: vars, Stages: s.list, Out: h.Name}, s.err)
	wantV, wantVV, wantH := y.moments()
	check := func(what string, x []float64, units int, power float64, want []float64) {
		for i := range units {
			var sum, square float64
			for k := range n {
				z := math.Pow(x[k*units+i], power)
				sum, square = sum+z/n, square+z*z/n
			}
			if se := math.Sqrt((square - sum*sum) / n); !(math.Abs(sum-want[i]) < 4*se) {
				t.Errorf("%s %d: %v ± %v, want %v", what, i, sum, se, want[i])
			}
		}
	}
	check("mean of v", at, 3, 1, wantV)
	check("mean of v²", at, 3, 2, wantVV)
	check("mean of h", on, 4, 1, wantH)
}

// FromHidden alternates as FromVisible does, from the other side.
func TestFromHidden(t *testing.T) {
	y := newToy(3, 4)
	start := []float64{1, 0, 1, 1, 0, 0, 0, 1}
	c, p := y.machine().begin()
	g := Gibbs{p, c.Input("key", graph.KeyType), philox.Chain}
	v, h := g.FromHidden(c, 2, c.Input("h", graph.T(graph.F64, 2, 4)))
	c.Output("v", v)
	c.Output("h", h)
	out := runGraph(t, c, y.vars(t), ddptest.Values{"h": start, "key": {testSeed, 7, 0}})
	var wantV, wantH []float64
	for i := range 2 {
		h := start[4*i : 4*i+4]
		var v []float64
		for k := range 2 {
			v = y.visible(h, named(7, i, 2*k, 3, philox.Name.Normal))
			h = y.hidden(v, named(7, i, 2*k+1, 4, philox.Name.Uniform), 1)
		}
		wantV, wantH = append(wantV, v...), append(wantH, h...)
	}
	near(t, "v", out["v"], wantV, 1e-12)
	near(t, "h", out["h"], wantH, 0)
}
