package vages

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// A model has what its training has made: codes and a posterior's divergence only where
// a posterior is fitted, and all else whatever stands for the score.
func TestWhatIsTrained(t *testing.T) {
	for _, e := range estimators() {
		m := modelOf(tinyUnits(func(c *Config) { c.Estimator = e }))
		if _, ok := m.(algo.Inferred); ok != (e == Variational) {
			t.Errorf("%s: measures a posterior's divergence: %v", e, ok)
		}
		if _, ok := m.(algo.Encoder); ok != (e == Variational) {
			t.Errorf("%s: has codes: %v", e, ok)
		}
		if _, ok := m.(interface {
			algo.Sampler
			algo.Energetic
			algo.Scored
			algo.Normalised
			algo.FisherScored
			algo.Losing
			algo.Grouped
			algo.Diagnosing
		}); !ok {
			t.Errorf("%s: %T lacks what every machine can do", e, m)
		}
	}
	m := modelOf(tinyNetworks(func(*Config) {}))
	if _, ok := m.(interface {
		algo.Sampler
		algo.Conditional
		algo.Encoder
		algo.Inferred
		algo.Losing
		algo.Grouped
		algo.Diagnosing
	}); !ok {
		t.Errorf("%T lacks what every deep model can do", m)
	}
}

func modelOf(c Config) algo.Model { return c.Model() }

// trained are the variables of a model before any step, in F32.
func trained(t *testing.T, m algo.Model) exec.Vars {
	t.Helper()
	_, specs, err := m.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	return vars
}

// asked are the outputs of a graph.
func asked(t *testing.T, vars exec.Vars, in ddptest.Values, g *graph.Graph, err error) ddptest.Values {
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

// The gap of a GRBM is the KL divergence summed over all 16 states h, at v as the lower
// level sees it: perturbed with DSM and MDSM, and the data with the others. Codes are q's
// means at the data.
func TestGapAndCodes(t *testing.T) {
	const n = 3
	for _, objective := range objectives() {
		cfg := tinyUnits(func(c *Config) { c.Objective, c.Sigma = objective, 0.6 })
		m := cfg.Model()
		vars := trained(t, m)
		in := ddptest.Values{algo.InputImages: rig{cfg: cfg, batch: n}.data(), algo.InputKey: {testSeed, 2, 40}}
		g, err := m.(algo.Inferred).PosteriorGap(n)
		gap := asked(t, vars, in, g, err)[algo.OutputGap]
		g, err = m.(algo.Encoder).Encode(n)
		code := asked(t, vars, in, g, err)[algo.OutputCode]
		seen := cfg.seen(t, in, n)
		for i := range n {
			_, q := bernoullis(t, vars, in[algo.InputImages][6*i:6*i+6])
			var want [4]float64
			for j := range want {
				want[j] = 1 / (1 + math.Exp(-q[j]))
			}
			if err := ddptest.Near(code[4*i:4*i+4], want[:], 1e-6); err != nil {
				t.Errorf("%s: code: %v", objective, err)
			}
			p, q := bernoullis(t, vars, seen[6*i:6*i+6])
			if err := ddptest.Near(gap[i:i+1], []float64{divergence(p, q)}, 1e-5); err != nil {
				t.Errorf("%s: gap: %v", objective, err)
			}
		}
	}
}

// seen is what the lower level sees of the n samples: with the noise that is drawn at the
// first place, at the one level or at n of the grid.
func (c Config) seen(t *testing.T, in ddptest.Values, n int) []float64 {
	t.Helper()
	ctx := nn.NewContext(nn.Eval, 1)
	key := ctx.Input(algo.InputKey, graph.KeyType)
	ctx.Output("eps", ctx.Draw(key, graph.Normal, philox.Perturb, 0, graph.T(graph.F32, n, 6)))
	begin := ctx.Concat(0, ctx.Slice(key, 0, 0, 2, 1), ctx.Zeros(graph.T(graph.I64, 1)))
	ctx.Output("levels", c.Levels.Levels(ctx, begin, n))
	g, err := ctx.Commit()
	drawn := asked(t, nil, in, g, err)
	v := append([]float64(nil), in[algo.InputImages]...)
	for i := range v {
		switch c.Objective {
		case DSM:
			v[i] += c.Sigma * drawn["eps"][i]
		case MDSM:
			v[i] += drawn["levels"][i/6] * drawn["eps"][i]
		}
	}
	return v
}

// bernoullis are the logits of p(h|v) and of q(h|v), for a machine of 6 + 4 units whose
// deviations are 1.
func bernoullis(t *testing.T, vars exec.Vars, v []float64) (p, q [4]float64) {
	t.Helper()
	x := map[string][]float64{}
	for _, name := range []string{"model.w", "model.c", "posterior.weight", "posterior.bias"} {
		value, err := vars.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		x[name] = ddptest.Numbers(value)
	}
	for j := range 4 {
		p[j], q[j] = x["model.c"][j], x["posterior.bias"][j]
		for k := range 6 {
			p[j] += x["model.w"][k*4+j] * v[k]
			q[j] += x["posterior.weight"][j*6+k] * v[k]
		}
	}
	return p, q
}

// divergence is KL(q ‖ p) of units with these logits, summed over all their states.
func divergence(p, q [4]float64) (kl float64) {
	for state := range 16 {
		logp, logq := 0.0, 0.0
		for j := range 4 {
			h := float64(state >> j & 1)
			logp += h*p[j] - math.Log1p(math.Exp(p[j]))
			logq += h*q[j] - math.Log1p(math.Exp(q[j]))
		}
		kl += math.Exp(logq) * (logq - logp)
	}
	return kl
}

// Samples of a deep model take the share of the chain that is asked for; the presets' is all.
func TestSampleShare(t *testing.T) {
	stages := func(share float64) (n int) {
		c := tinyNetworks(func(c *Config) { c.SampleShare = share })
		plan, err := c.Model().(algo.Sampler).Sample(nn.Eval, 2)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Transitions()
	}
	if whole, part := stages(1), stages(0.1); whole < 2700 || part > whole/5 {
		t.Errorf("%d transitions, of a tenth %d", whole, part)
	}
	for _, p := range Method().Presets {
		if c := p.Config.(*Config); c.SampleShare != 1 {
			t.Errorf("%s: a share of %v", p.Name, c.SampleShare)
		}
	}
}
