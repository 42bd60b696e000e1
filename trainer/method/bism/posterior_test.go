package bism

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
)

// exact makes q the true posterior of the GRBM in vars: logits c + Wᵀv.
func exact(vars exec.Vars) error {
	w, err := vars.Get("model.w")
	if err != nil {
		return err
	}
	c, err := vars.Get("model.c")
	if err != nil {
		return err
	}
	visible, hidden := w.Type.Shape.At(0), w.Type.Shape.At(1)
	t := exec.NewTensor(graph.T(graph.F64, hidden, visible))
	for i := range visible {
		for j := range hidden {
			t.SetAt(j*visible+i, w.At(i*hidden+j))
		}
	}
	if err := vars.Set("posterior.weight", t); err != nil {
		return err
	}
	return vars.Set("posterior.bias", c)
}

// With q the true posterior, S is the marginal score at every h, soft ones too,
// and BiDSM's loss is that of denoising score matching of the marginal.
func TestTruePosterior(t *testing.T) {
	r := newRig(tinyUnits(func(c *Config) { c.Unroll, c.LowerSteps = 0, 0 }), 8)
	build := func(s *step) {
		v := s.see(upperPlace)
		marginal := grbm.Of(s.theta.P).Score(s.Context, v.v)
		s.Output("S", s.score(s.phi.P, v.v))
		s.Output("score", marginal)
		miss := s.Add(marginal, s.Scale(v.eps, 1/s.cfg.Sigma))
		s.Output("dsm", s.Scale(s.Sum(s.Square(miss)), 0.5/float64(s.Batch(v.v))))
		s.Output("bidsm", s.upper(s.phi.P))
	}
	out, _, err := r.run(1, build, exact)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "S", out["S"], out["score"], 1e-12)
	near(t, "BiDSM's loss", out["bidsm"], out["dsm"], 1e-12)

	if out, _, err = r.run(1, build, nil); err != nil {
		t.Fatal(err)
	}
	if ddptest.Near(out["S"], out["score"], 1e-2) == nil {
		t.Error("S is the marginal score with another posterior, too: this test sees nothing")
	}
}

// Over all 64 sign vectors in the place of the projections, BiSSM's loss with the
// true posterior is the marginal's with the trace in closed form.
func TestProjectedTraceAverages(t *testing.T) {
	r := newRig(tinyUnits(func(c *Config) { c.Objective, c.Unroll, c.LowerSteps = SSM, 0, 0 }), 64)
	one := []float64{0.2, 0.9, 0.4, 0.1, 0.7, 0.5}
	var images, signs []float64
	for i := range r.batch {
		images = append(images, one...)
		for j := range one {
			signs = append(signs, float64(2*(i>>j&1)-1))
		}
	}
	s := r.begin(1)
	drawn := s.draw
	s.draw = func(p philox.Purpose, place int, d graph.Dist, typ graph.Type) graph.ID {
		if p == philox.Projection {
			return s.Input("signs", typ)
		}
		return drawn(p, place, d, typ)
	}
	s.Output("bissm", s.upper(s.phi.P))
	s.Output("closed", s.Mean(grbm.Of(s.theta.P).FisherLoss(s.Context, s.data)))
	g, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars, err := r.vars(s.Variables())
	if err != nil {
		t.Fatal(err)
	}
	if err := exact(vars); err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: images, algo.InputKey: {testSeed, 0, 0}, "signs": signs})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "BiSSM's loss", out["bissm"], out["closed"], 1e-12)
}
