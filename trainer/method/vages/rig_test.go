package vages

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

const testSeed = 7

// tinyUnits is a GRBM of 6 + 4 units with rates at which a step is felt.
func tinyUnits(change func(*Config)) Config {
	c := *frey()
	c.Net = latent.Net{Kind: latent.GRBM, C: 1, H: 2, W: 3, Hidden: 4, Width: 1, Depth: 1, PosteriorWidth: 1}
	c.LR, c.PosteriorLR, c.Temperature, c.Bandwidth = 0.03, 0.05, 0.5, 0.7
	change(&c)
	return c
}

// tinyNetworks is an EBLVM of width 2.
func tinyNetworks(change func(*Config)) Config {
	c := *mnist()
	c.Net = latent.Net{Kind: latent.EBLVM, C: 1, H: 8, W: 8, Hidden: 3, Width: 2, Depth: 1, PosteriorWidth: 2}
	c.LR, c.PosteriorLR, c.Sigma0, c.Refine.Steps = 0.01, 0.02, 1, 2
	change(&c)
	return c
}

// rig runs a step of a config on one rank, in float64 on the reference backend.
type rig struct {
	cfg   Config
	batch int
	step  int64
	// change changes the variables before, and after sees them then; both may be nil.
	change, after func(exec.Vars) error
}

// trained is what newStep wants of a config.
func (c Config) trained() latent.Trained { return latent.Trained{Net: c.Net, Model: c.model()} }

// data is the batch.
func (r rig) data() []float64 {
	n := r.cfg.Net
	x := ddptest.Noise(1, r.batch*n.C*n.H*n.W)
	for i := range x {
		x[i] = 0.5 + 0.45*math.Sin(3*x[i])
	}
	return x
}

// run is the outputs of what build adds to a step.
func (r rig) run(t *testing.T, build func(s *step)) ddptest.Values {
	t.Helper()
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	s := newStep(c, r.cfg, r.cfg.trained(), r.batch)
	build(s)
	g, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	for _, v := range s.Variables() {
		if err := vars.Set(v.Name, v.Value(testSeed)); err != nil {
			t.Fatal(err)
		}
	}
	if r.change != nil {
		if err := r.change(vars); err != nil {
			t.Fatal(err)
		}
	}
	in := ddptest.Values{algo.InputImages: r.data(), algo.InputKey: {testSeed, float64(r.step), 0}, algo.InputStop: {0}}
	for i := range r.cfg.steps() + 1 {
		rates := r.cfg.rates(i, r.step)
		in[inputRates] = append(in[inputRates], rates[:]...)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err == nil && r.after != nil {
		err = r.after(vars)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gradient is that of the surrogate in θ, by variable, with φ as it is.
func (r rig) gradient(t *testing.T) ddptest.Values {
	t.Helper()
	return r.run(t, func(s *step) {
		surrogate, _ := s.upper(s.estimate(s.phi.P))
		s.gradients(s.Mean(surrogate))
	})
}

// gradients are the outputs that are the gradient of x.
func (s *step) gradients(x graph.ID) {
	for i, g := range s.gradient(x) {
		s.Output(s.thetas[i].Name, g)
	}
}

// distance is the length of a − b over that of b, all outputs as one vector.
func distance(a, b ddptest.Values) float64 {
	var diff, all float64
	for name, y := range b {
		for i := range y {
			diff += (a[name][i] - y[i]) * (a[name][i] - y[i])
			all += y[i] * y[i]
		}
	}
	return math.Sqrt(diff / all)
}

// posterior makes q the true posterior of a GRBM, whose logits are linear in v too.
func posterior(vars exec.Vars) error {
	w, err := vars.Get("model.w")
	if err != nil {
		return err
	}
	c, err := vars.Get("model.c")
	if err != nil {
		return err
	}
	v, h := w.Type.Shape.At(0), w.Type.Shape.At(1)
	q := exec.NewTensor(graph.T(w.Type.DType, h, v))
	for i := range v {
		for j := range h {
			q.SetAt(j*v+i, w.At(i*h+j))
		}
	}
	if err := vars.Set("posterior.weight", q); err != nil {
		return err
	}
	return vars.Set("posterior.bias", c)
}
