package latent

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

const (
	batch  = 3
	hidden = 4
)

// models are one of each kind, of the same samples and latents.
func models() map[Kind]Model {
	n := Net{C: 1, H: 8, W: 8, Hidden: hidden, Width: 1, Depth: 1, PosteriorWidth: 2}
	all := map[Kind]Model{}
	for _, n.Kind = range Kinds() {
		all[n.Kind] = n.Model(0.5)
	}
	return all
}

// rig is a graph of a model in float64, at some v.
type rig struct {
	*nn.Context
	theta []graph.ID
	v     graph.ID
	q     Belief
}

func newRig(m Model, rows int) rig {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	theta, phi := m.Declare(c)
	v := c.Input("v", graph.T(graph.F64, append([]int{rows}, m.Shape().Slice()...)...))
	return rig{c, nn.IDs(theta), v, m.Infer(c, nn.IDs(phi), v)}
}

// run runs the graph, at v and whatever else it reads.
func (r rig) run(t *testing.T, v []float64, in ddptest.Values) ddptest.Values {
	t.Helper()
	in["v"] = v
	g, err := r.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, r.Variables(), 1); err != nil {
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

// samples are some, and all of them n times, one after the other.
func samples(m Model, n int) (v, repeated []float64) {
	size := m.Shape().Len()
	v = ddptest.Noise(1, batch*size)
	for one := range slices.Chunk(v, size) {
		repeated = append(repeated, slices.Repeat(one, n)...)
	}
	return v, repeated
}

// What is repeated stands in rows one after the other; and a belief repeated is the belief
// at samples that are repeated: its samples, its density and its means.
func TestRepeat(t *testing.T) {
	const n = 2
	numbers := ddptest.Noise(2, batch*n*hidden)
	for i, x := range numbers {
		numbers[i] = 1 / (1 + math.Exp(-x)) // good for either distribution
	}
	for kind, m := range models() {
		v, repeated := samples(m, n)
		draw := func(r rig, q Belief, v []float64) ddptest.Values {
			h := q.Sample(r.Context, r.Input("numbers", graph.T(graph.F64, batch*n, hidden)))
			r.Output("h", h)
			r.Output("log q", q.LogProb(r.Context, h))
			r.Output("mean", q.Mean(r.Context))
			return r.run(t, v, ddptest.Values{"numbers": numbers})
		}
		few, all := newRig(m, batch), newRig(m, batch*n)
		few.Output("repeated", Repeat(few.Context, few.v, n))
		got, want := draw(few, few.q.Repeat(few.Context, n), v), draw(all, all.q, repeated)
		want["repeated"] = repeated
		for name, x := range want {
			near(t, string(kind)+", "+name, got[name], x, 1e-12)
		}
	}
}

// Of Bernoulli units all 16 states are known: q adds up to one and has its mean, the
// ratio is −E − log q, and the gap is the KL divergence from the posterior that E has.
func TestUnits(t *testing.T) {
	m := models()[GRBM]
	var states []float64
	for i := range 1 << hidden {
		for j := range hidden {
			states = append(states, float64(i>>j&1))
		}
	}
	const n = 1 << hidden
	r := newRig(m, batch)
	v, h := Repeat(r.Context, r.v, n), r.Input("h", graph.T(graph.F64, batch*n, hidden))
	q := r.q.Repeat(r.Context, n)
	r.Output("E", Energy(r.Context, m, r.theta, v, h))
	r.Output("log q", q.LogProb(r.Context, h))
	r.Output("ratio", LogRatio(r.Context, m, r.theta, q, v, h))
	r.Output("KL", KL.Lower(r.Context, m, r.theta, q, v, h))
	r.Output("mean", r.q.Mean(r.Context))
	r.Output("gap", m.Gap(r.Context, r.theta, r.q, r.v, 0))
	some, _ := samples(m, 1)
	out := r.run(t, some, ddptest.Values{"h": slices.Repeat(states, batch)})
	for i := range batch {
		var total, evidence, gap float64
		mean := make([]float64, hidden)
		for k := i * n; k < (i+1)*n; k++ {
			evidence += math.Exp(-out["E"][k])
		}
		for k := range n {
			e, logq := out["E"][i*n+k], out["log q"][i*n+k]
			total += math.Exp(logq)
			gap += math.Exp(logq) * (logq + e + math.Log(evidence))
			for j := range mean {
				mean[j] += math.Exp(logq) * states[k*hidden+j]
			}
			near(t, "ratio", out["ratio"][i*n+k:][:1], []float64{-e - logq}, 1e-12)
			near(t, "what KL minimises", out["KL"][i*n+k:][:1], []float64{e + logq}, 1e-12)
		}
		near(t, "sum of q", []float64{total}, []float64{1}, 1e-12)
		near(t, "mean of q", out["mean"][i*hidden:][:hidden], mean, 1e-12)
		near(t, "gap", out["gap"][i:][:1], []float64{gap}, 1e-10)
	}
}

// Sizes are those of the models that they are of, and what cannot be is refused.
func TestNet(t *testing.T) {
	n := Net{Kind: EBLVM, C: 3, H: 16, W: 16, Hidden: 5, Width: 6, Depth: 7, PosteriorWidth: 8}
	want := eblvm.Net{Trunk: eblvm.Trunk{Size: 16, Channels: 3, Width: 6, Blocks: 7}, Latent: 5, PosteriorWidth: 8}
	if got := n.EBLVM(); got != want || n.Model(0.5) != (Networks{want}) || n.Picture() != graph.D(3, 16, 16) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := (Trained{Net: n}).Takes(), (algo.Inputs{Shape: n.Picture(), Range: loader.Unit}); !reflect.DeepEqual(got, want) {
		t.Errorf("takes %+v, want %+v", got, want)
	}
	if got, want := n.GRBM(), (grbm.Size{Visible: 3 * 16 * 16, Hidden: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for want, change := range map[string]func(n *Net){
		"":                             func(*Net) {},
		`unknown --model "rbm"`:        func(n *Net) { n.Kind = "rbm" },
		"want samples of at least one": func(n *Net) { n.C = 0 },
		"takes square pictures":        func(n *Net) { n.W = 8 },
		"at least one latent":          func(n *Net) { n.Hidden = 0 },
		"one hidden unit":              func(n *Net) { n.Kind, n.Hidden = GRBM, 0 },
	} {
		bad := n
		change(&bad)
		if err := bad.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", bad, err, want)
		}
	}
	for _, tt := range []struct {
		kind Kind
		d    Divergence
		ok   bool
	}{{GRBM, KL, true}, {GRBM, Fisher, false}, {EBLVM, KL, true}, {EBLVM, Fisher, true}} {
		if err := (Net{Kind: tt.kind}).CheckDivergence(tt.d); (err == nil) != tt.ok {
			t.Errorf("%s of %s: %v", tt.d, tt.kind, err)
		}
	}
}

// Of Gaussian latents the gap and the Fisher divergence's term are half the squared slope
// of the ratio in h.
func TestNetworks(t *testing.T) {
	m := models()[EBLVM]
	v, _ := samples(m, 1)
	at := func(h []float64) ddptest.Values {
		r := newRig(m, batch)
		x := r.Input("h", graph.T(graph.F64, batch, hidden))
		r.Output("ratio", LogRatio(r.Context, m, r.theta, r.q, r.v, x))
		r.Output("gap", m.Gap(r.Context, r.theta, r.q, r.v, x))
		r.Output("fisher", Fisher.Lower(r.Context, m, r.theta, r.q, r.v, x))
		return r.run(t, v, ddptest.Values{"h": h})
	}
	h := ddptest.Noise(3, batch*hidden)
	want := make([]float64, batch)
	const step = 1e-5
	for j := range hidden {
		moved := func(by float64) []float64 {
			x := slices.Clone(h)
			for i := range batch {
				x[i*hidden+j] += by
			}
			return at(x)["ratio"]
		}
		up, down := moved(step), moved(-step)
		for i := range batch {
			slope := (up[i] - down[i]) / (2 * step)
			want[i] += slope * slope / 2
		}
	}
	out := at(h)
	near(t, "gap", out["gap"], want, 1e-6)
	near(t, "Fisher divergence's term", out["fisher"], want, 1e-6)
}

// Samples take the share of the published 500, 2,000 and 200 steps that is asked for, and
// the last one takes away noise of the level that the score was trained at:
// v ← v − σ²∇_vE(v,h), within [0, 1].
func TestSampler(t *testing.T) {
	const sigma = 3 // a slope is felt
	net := Net{Kind: EBLVM, C: 1, H: 8, W: 8, Hidden: hidden, Width: 1, Depth: 1, PosteriorWidth: 2}
	s := Sampler{Net: net, Share: 0.004, Denoise: sigma}
	plan, err := s.SampleGiven(batch)
	if err != nil {
		t.Fatal(err)
	}
	if joint, err := s.Sample(nn.Eval, batch); err != nil || joint.Stages[1].Times != 2+8+1 || plan.Stages[1].Times != 2+8+1 {
		t.Errorf("%v: %d and %d steps, want 2 + 8 + 1", err, joint.Stages[1].Times, plan.Stages[1].Times)
	}
	m := net.Model(0)
	c := nn.NewContext(nn.Eval, 1)
	theta, _ := m.Declare(c)
	v, h := c.Input("v", graph.T(graph.F32, batch, 1, 8, 8)), c.Input("h", graph.T(graph.F32, batch, hidden))
	c.Output("slope", c.Grad(c.Sum(Energy(c, m, nn.IDs(theta), v, h)), v)[0])
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars, x, given := ddptest.NewVars(), ddptest.Noise(4, batch*64), ddptest.Noise(5, batch*hidden)
	for i := range x {
		x[i] = 0.5 + 0.2*math.Sin(x[i])
	}
	if err := nn.Initialise(vars, append(c.Variables(), plan.Vars...), 1); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]float64{plan.Vars[0].Name: given, plan.Out: x} {
		typ, _ := vars.Type(name)
		if err := vars.Set(name, ddptest.Tensor(typ, value)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{"v": x, "h": given})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ddptest.Run(plan.Stages[2].Graph, vars, nil, nil); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(x)
	for i, d := range out["slope"] {
		want[i] = min(1, max(0, x[i]-sigma*sigma*d))
	}
	if ddptest.Near(want, x, 1e-3) == nil {
		t.Error("a step of nothing: the test sees nothing")
	}
	got, err := vars.Get(plan.Out)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the last step", ddptest.Numbers(got), want, 1e-5)
}
