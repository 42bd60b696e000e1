package bism

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// What programs find in a trained model.
var (
	_ interface {
		algo.Model
		algo.Sampler
		algo.Energetic
		algo.Encoder
		algo.Scored
		algo.Normalised
		algo.FisherScored
		algo.Inferred
		algo.Bilevel
	} = machine{}
	_ interface {
		algo.Model
		algo.Sampler
		algo.Conditional
		algo.Encoder
		algo.Inferred
		algo.Bilevel
	} = deep{}
)

// trained are the variables of a model, in F32.
func trained(t *testing.T, m algo.Model) exec.Vars {
	t.Helper()
	_, specs, err := m.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := ref.New().NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	return vars
}

// The gap of a GRBM is the KL divergence summed over all 16 states h, at the
// perturbed samples, and codes are q's means.
func TestGapAndCodes(t *testing.T) {
	const n = 3
	r := newRig(tinyUnits(func(*Config) {}), n)
	m := r.cfg.Model()
	vars := trained(t, m)
	in := ddptest.Values{algo.InputImages: r.data(), algo.InputKey: {testSeed, 2, 40}}
	run := func(g *graph.Graph, err error) ddptest.Values {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, vars, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	gap := run(m.(algo.Inferred).PosteriorGap(n))[algo.OutputGap]
	code := run(m.(algo.Encoder).Encode(n))[algo.OutputCode]

	c := nn.NewContext(nn.Eval, 1)
	eps := c.Draw(c.Input(algo.InputKey, graph.KeyType), graph.Normal, 10, 0, graph.T(graph.F32, n, 6))
	c.Output("eps", eps)
	noise := run(c.Commit())["eps"]
	w, cs := numbers(t, vars, "model.w"), numbers(t, vars, "model.c")
	l, a := numbers(t, vars, "posterior.weight"), numbers(t, vars, "posterior.bias")
	for i := range n {
		logits := func(v []float64) (p, q [4]float64) {
			for j := range 4 {
				p[j], q[j] = cs[j], a[j]
				for k := range 6 {
					p[j] += w[k*4+j] * v[k]
					q[j] += l[j*6+k] * v[k]
				}
			}
			return p, q
		}
		data := in[algo.InputImages][6*i : 6*i+6]
		_, clean := logits(data)
		for j := range 4 {
			near(t, "code", code[4*i+j:4*i+j+1], []float64{1 / (1 + math.Exp(-clean[j]))}, 1e-6)
		}
		p, q := logits(axpy(r.cfg.Sigma, noise[6*i:6*i+6], data))
		want := 0.0
		for state := range 16 {
			logp, logq := 0.0, 0.0
			for j := range 4 {
				h := float64(state >> j & 1)
				logp += h*p[j] - math.Log1p(math.Exp(p[j]))
				logq += h*q[j] - math.Log1p(math.Exp(q[j]))
			}
			want += math.Exp(logq) * (logq - logp)
		}
		near(t, "gap", gap[i:i+1], []float64{want}, 1e-5)
	}
}

// The gap of an EBLVM depends on noise levels that lie over the samples given,
// wherever they are in the data.
func TestGapOfNetworks(t *testing.T) {
	const n = 3
	r := newRig(tinyNetworks(func(*Config) {}), n)
	m := r.cfg.Model()
	vars := trained(t, m)
	g, err := m.(algo.Inferred).PosteriorGap(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []float64{0, 300} {
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: r.data(), algo.InputKey: {testSeed, 2, first}})
		if err != nil {
			t.Fatal(err)
		}
		if gaps := out[algo.OutputGap]; len(gaps) != n || !(gaps[0] > 0) || gaps[0] == gaps[1] {
			t.Errorf("from sample %v: gaps %v", first, gaps)
		}
	}
}

// An EBLVM's samples are pictures with latents that move, or that are given, with
// the share of steps that its config says.
func TestPlans(t *testing.T) {
	r := newRig(tinyNetworks(func(c *Config) { c.SampleShare = 0.004 }), 2)
	d := r.cfg.Model().(deep)
	if a := d.Sampler; a.Denoise != r.cfg.Sigma0 || a.Share != r.cfg.SampleShare {
		t.Errorf("the sampler is %+v", a)
	}
	for objective, want := range map[Objective]float64{SSM: 0, DSM: 0.6, MDSM: 0.9} {
		c := tinyNetworks(func(c *Config) { c.Objective, c.Sigma, c.Sigma0 = objective, 0.6, 0.9 })
		if got := c.Model().(deep).Denoise; got != want {
			t.Errorf("samples of %s are denoised by %v, want %v", objective, got, want)
		}
	}
	joint, err := d.Sample(nn.Eval, 2)
	if err != nil {
		t.Fatal(err)
	}
	given, err := d.SampleGiven(2)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := given.Vars[0].Type, graph.T(graph.F32, 2, r.cfg.Net.Hidden); got != want {
		t.Errorf("the given latents are %v, want %v", got, want)
	}
	for _, v := range joint.Vars {
		if v.Name == joint.Out && v.Type != graph.T(graph.F32, 2, 1, 8, 8) {
			t.Errorf("samples are %v", v.Type)
		}
	}
}

// Feeder fills the rates that the lower level's optimiser counts on with: step 2
// with K = 3 begins with its seventh step, and the unrolled ones follow; then comes the
// upper level's third. The lower level has a rate of its own if it is given one.
func TestRates(t *testing.T) {
	for name, inner := range map[string]Config{
		"one rate":    tinyUnits(func(c *Config) { c.InnerLR = 0 }),
		"two rates":   tinyUnits(func(*Config) {}),
		"descent":     tinyUnits(func(c *Config) { c.Inner = SGD }),
		"descent too": tinyUnits(func(c *Config) { c.Inner, c.InnerLR = SGD, 0 }),
	} {
		inner.LowerSteps, inner.Unroll = 3, 2
		m := inner.Model()
		g, specs, err := m.Step(1, 4)
		if err != nil {
			t.Fatal(err)
		}
		b := ref.New()
		vars := b.NewVars()
		if err := nn.Initialise(vars, specs, testSeed); err != nil {
			t.Fatal(err)
		}
		p, err := b.Compile(g, exec.Options{Name: "step", Vars: vars})
		if err != nil {
			t.Fatal(err)
		}
		m.Feeder(p)(2, 0)
		got := ddptest.Numbers(p.Input(inputRates))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		for i, number := range []float64{7, 8, 9, 10, 11, 3} {
			rate := 0.03
			if inner.InnerLR != 0 && i < 5 {
				rate = 0.05
			}
			want := []float64{rate / (1 - math.Pow(0.9, number)), 1 / math.Sqrt(1-math.Pow(0.95, number))}
			if inner.Inner == SGD && i < 5 {
				want = []float64{rate, 1}
			}
			near(t, name, got[2*i:2*i+2], want, 1e-6)
		}
	}
}

// A hypergradient is of float32 or float64.
func TestHypergradientTypes(t *testing.T) {
	cfg := tinyUnits(func(*Config) {})
	b := cfg.trainee()
	for _, d := range []graph.DType{graph.F32, graph.F64} {
		g, specs, err := b.Hypergradient(algo.HyperOptions{World: 1, Batch: 2, DType: d})
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Assigns()) != 0 || len(g.Outputs()) != 5 || specs[0].Type.DType != d {
			t.Errorf("%v: %d assignments, %d outputs, variables of %v", d, len(g.Assigns()), len(g.Outputs()), specs[0].Type.DType)
		}
	}
	if _, _, err := b.Hypergradient(algo.HyperOptions{World: 1, Batch: 2, DType: graph.I64}); err == nil {
		t.Error("integers pass")
	}
}
