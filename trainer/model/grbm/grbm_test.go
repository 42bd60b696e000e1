package grbm

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// rows are n random vectors of the visible units, and each of them.
func (y toy) rows(n int) (flat []float64, each [][]float64) {
	flat = ddptest.Noise(10, n*len(y.b))
	return flat, slices.Collect(slices.Chunk(flat, len(y.b)))
}

// Energy, free energy, score and Fisher loss are those of the energy's formula in
// plain Go: sums over all states, and differences.
func TestFormulas(t *testing.T) {
	y := newToy(3, 4)
	flat, rows := y.rows(5)
	h := make([]float64, 5*4)
	for i := range h {
		h[i] = 1 / (1 + math.Exp(-ddptest.Noise(11, len(h))[i])) // soft
	}
	var energy, free, score, fisher []float64
	for i, v := range rows {
		energy = append(energy, y.energy(v, h[4*i:4*i+4]))
		free = append(free, y.free(v))
		score = append(score, y.score(v)...)
		fisher = append(fisher, y.fisher(v))
	}
	c, p := y.machine().begin()
	v := c.Input("v", graph.T(graph.F64, 5, 3))
	c.Output("energy", p.Energy(c, v, c.Input("h", graph.T(graph.F64, 5, 4))))
	c.Output("free", p.FreeEnergy(c, v))
	c.Output("score", p.Score(c, v))
	c.Output("fisher", p.FisherLoss(c, v))
	out := runGraph(t, c, y.vars(t), ddptest.Values{"v": flat, "h": h})
	near(t, "energy", out["energy"], energy, 1e-13)
	near(t, "free energy", out["free"], free, 1e-13)
	near(t, "score", out["score"], score, 1e-8)
	near(t, "Fisher loss", out["fisher"], fisher, 1e-7)
}

// The logits of p(h|v) and the mean of p(v|h) are those of the joint density.
func TestConditionals(t *testing.T) {
	y := newToy(3, 4)
	flat, rows := y.rows(5)
	var want []float64
	for _, v := range rows {
		posterior := y.posterior(v)
		for j := range y.c {
			on := 0.0
			for i, h := range y.states() {
				on += posterior[i] * h[j]
			}
			want = append(want, on)
		}
	}
	got := y.apply(t, flat, func(c *nn.Context, p Params, v graph.ID) graph.ID { return c.Sigmoid(p.Logits(c, v)) })
	near(t, "p(h|v)", got, want, 1e-12)

	c, p := y.machine().begin()
	c.Output("mean", p.Mean(c, c.Input("h", graph.T(graph.F64, 16, 4))))
	states := slices.Concat(y.states()...)
	mean := runGraph(t, c, y.vars(t), ddptest.Values{"h": states})["mean"]
	for i, h := range y.states() {
		// At the mean of p(v|h) the energy has no slope.
		for k := range 3 {
			at := func(v []float64) float64 { return y.energy(v, h) }
			const d = 1e-4
			if slope := bump(at, mean[3*i:3*i+3], k, d) - bump(at, mean[3*i:3*i+3], k, -d); !(math.Abs(slope) <= 1e-11) {
				t.Errorf("state %v, unit %d: the energy is not least at the mean: %v", h, k, slope)
			}
		}
	}
}

// The weights of draws from any q average to exp(−F) over q, for each v and each
// of its draws.
func TestLogWeights(t *testing.T) {
	y := newToy(3, 4)
	flat, rows := y.rows(2)
	weight, bias := ddptest.Noise(12, 4*3), ddptest.Noise(13, 4)
	states := y.states()
	c, p := y.machine().begin()
	v := c.Input("v", graph.T(graph.F64, 2, 3))
	q := Posterior{c.Input("weight", graph.T(graph.F64, 4, 3)), c.Input("bias", graph.T(graph.F64, 4))}
	h := c.Input("h", graph.T(graph.F64, 2, len(states), 4))
	c.Output("weights", p.LogWeights(c, q, v, h))
	both := slices.Concat(slices.Concat(states...), slices.Concat(states...))
	got := runGraph(t, c, y.vars(t), ddptest.Values{"v": flat, "weight": weight, "bias": bias, "h": both})["weights"]
	var want []float64
	for i, v := range rows {
		mean := 0.0
		for k, h := range states {
			logq := 0.0
			for j := range h {
				l := bias[j]
				for a := range v {
					l += weight[3*j+a] * v[a]
				}
				logq += h[j]*l - math.Log1p(math.Exp(l))
			}
			want = append(want, -y.energy(v, h)-logq)
			mean += math.Exp(logq + got[i*len(states)+k])
		}
		near(t, "mean over q", []float64{math.Log(mean)}, []float64{-y.free(v)}, 1e-12)
	}
	near(t, "log weights", got, want, 1e-12)
}

// Log σ begins at 0, the model's other numbers uniform on ±1/√Hidden, the posterior's on
// ±1/√Visible [ALGORITHMS.md §2.2].
func TestInitialValues(t *testing.T) {
	z := Size{Visible: 300, Hidden: 1000}
	c := nn.NewContext(nn.Train, 1)
	z.Declare(c)
	z.DeclarePosterior(c)
	for _, v := range c.Variables() {
		bound := map[string]float64{"model.s": 0, "posterior.weight": 1 / math.Sqrt(300), "posterior.bias": 1 / math.Sqrt(300)}
		want, ok := bound[v.Name]
		if !ok {
			want = 1 / math.Sqrt(1000)
		}
		x := ddptest.Numbers(v.Value(1))
		least, most := slices.Min(x), slices.Max(x)
		if least < -want*(1+1e-6) || most > want*(1+1e-6) || least > -0.95*want || most < 0.95*want {
			t.Errorf("%s is from %v to %v, want it from %v to %v", v.Name, least, most, -want, want)
		}
	}
}

// What programs ask is the same numbers, in pictures' shapes.
func TestMachineGraphs(t *testing.T) {
	y := newToy(6, 4)
	m := y.machine()
	m.Picture = graph.D(1, 3, 2)
	if got, want := m.Takes(), (algo.Inputs{Shape: m.Picture, Range: loader.Unit}); !reflect.DeepEqual(got, want) {
		t.Errorf("takes %+v, want %+v", got, want)
	}
	flat, rows := y.rows(5)
	var free, score, fisher []float64
	for _, v := range rows {
		free, score, fisher = append(free, y.free(v)), append(score, y.score(v)...), append(fisher, y.fisher(v))
	}
	for _, tt := range []struct {
		output string
		shape  graph.Shape
		want   []float64
		build  func() (*graph.Graph, error)
	}{
		{algo.OutputEnergy, graph.D(5, 1), free, func() (*graph.Graph, error) { return m.Energies(nn.Eval, 5) }},
		{algo.OutputLogit, graph.D(5, 1), free, func() (*graph.Graph, error) { return m.Energies(nn.BatchStats, 5) }},
		{algo.OutputScore, graph.D(5, 1, 3, 2), score, func() (*graph.Graph, error) { return m.Score(5) }},
		{algo.OutputFisher, graph.D(5), fisher, func() (*graph.Graph, error) { return m.FisherLoss(5) }},
	} {
		g, err := tt.build()
		if err != nil {
			t.Fatalf("%s: %v", tt.output, err)
		}
		out, err := ddptest.Run(g, y.vars(t), nil, ddptest.Values{algo.InputImages: flat})
		if err != nil {
			t.Fatalf("%s: %v", tt.output, err)
		}
		near(t, tt.output, out[tt.output], tt.want, 1e-7)
		for _, o := range g.Outputs() {
			if o.Name == tt.output && g.Type(o.ID).Shape != tt.shape {
				t.Errorf("%s is %v, want %v", tt.output, g.Type(o.ID), tt.shape)
			}
		}
		if n := len(g.Assigns()); n != 0 {
			t.Errorf("%s: %d variables are assigned", tt.output, n)
		}
	}
}

// A machine is everything that evaluation looks for in a normalised model.
var (
	_ algo.Sampler      = Machine{}
	_ algo.Drawn        = Machine{}
	_ algo.Energetic    = Machine{}
	_ algo.Normalised   = Machine{}
	_ algo.Scored       = Machine{}
	_ algo.FisherScored = Machine{}
)
