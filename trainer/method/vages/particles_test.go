package vages

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
)

// A particle's refinement against its definition, h ← h − ½α∇_hE + τξ.
func TestRefined(t *testing.T) {
	cfg := tinyNetworks(func(c *Config) { c.Refine = Refine{Steps: 2, Rate: 0.3, Noise: 0.2} })
	out := rig{cfg: cfg, batch: 3}.run(t, func(s *step) {
		v := s.see(scorePlace).v
		h := s.latents(scorePlace, 3, graph.Normal)
		s.Output("refined", s.refined(v, h, covariancePlace))
		each := latent.Repeat(s.Context, v, cfg.Particles)
		for i := range 2 {
			e := latent.Energy(s.Context, s.model, s.drawer.theta, each, h)
			xi := s.Draw(s.key, graph.Normal, philox.Refine, uint16(covariancePlace*maxSteps+i), graph.T(s.DType, 3, cfg.Particles, 3))
			h = s.Add(h, s.Sub(s.Scale(s.Reshape(xi, s.Shape(h)), 0.2), s.Scale(s.Grad(s.Sum(e), h)[0], 0.15)))
		}
		s.Output("want", h)
	})
	if err := ddptest.Near(out["refined"], out["want"], 1e-12); err != nil {
		t.Error(err)
	}
}

// The three sets of particles, and those of other steps, are drawn apart; sets of the
// same place are the same.
func TestSetsAreIndependent(t *testing.T) {
	draw := func(step int64, place int) []float64 {
		cfg := tinyUnits(func(*Config) {})
		return rig{cfg: cfg, batch: 2, step: step}.run(t, func(s *training) {
			v := s.see(scorePlace).v
			s.Output("h", s.particles(s.model.Infer(s.Context, s.phi.P, v), v, place).h)
		})["h"]
	}
	seen := map[float64]string{}
	for _, place := range []int{scorePlace, meanPlace, covariancePlace} {
		for _, step := range []int64{0, 1} {
			h := draw(step, place)[0]
			if other, ok := seen[h]; ok {
				t.Errorf("place %d of step %d has the particle of %s", place, step, other)
			}
			seen[h] = "another"
		}
	}
	if err := ddptest.Near(draw(0, meanPlace), draw(0, meanPlace), 0); err != nil {
		t.Error(err)
	}
}

// training is a step, where step is a number.
type training = step

// −F(v) from L fair coins tends to the exact one; of one coin it is −E + d_h·log 2.
func TestImportance(t *testing.T) {
	off := func(particles int) float64 {
		cfg := tinyUnits(func(c *Config) { c.Estimator, c.Particles = Importance, particles })
		out := rig{cfg: cfg, batch: 8}.run(t, func(s *step) {
			v := s.see(scorePlace).v
			s.Output("exact", exact().logp(s.drawer, s.drawer.theta, v))
			s.Output("estimate", importance().logp(s.drawer, s.drawer.theta, v))
		})
		sum := 0.0
		for i := range out["exact"] {
			sum += math.Abs(out["exact"][i] - out["estimate"][i])
		}
		return sum / 8
	}
	one, many := off(1), off(maxParticles)
	if many > 0.03 || many > one/10 {
		t.Errorf("off by %.3g with one particle, %.3g with %d", one, many, maxParticles)
	}
}

// With the true posterior log p̃ − log q is the marginal's log p but for its normaliser,
// whatever the latents are: so with the control variate the score is the exact one from
// two particles, and without it is off.
func TestControlVariate(t *testing.T) {
	off := func(control bool) float64 {
		cfg := tinyUnits(func(c *Config) { c.ControlVariate = control })
		out := rig{cfg: cfg, batch: 4, change: posterior}.run(t, func(s *step) {
			v := s.see(scorePlace).v
			s.Output("exact", exact().score(s.drawer, v))
			s.Output("score", variational{s.phi.P}.score(s.drawer, v))
		})
		return distance(ddptest.Values{"": out["score"]}, ddptest.Values{"": out["exact"]})
	}
	if with, without := off(true), off(false); with > 1e-12 || without < 1e-3 {
		t.Errorf("the score is off by %.2g with the control variate, by %.2g without", with, without)
	}
}

// The sampler's last step takes away the noise of what the score is matched to.
func TestDenoise(t *testing.T) {
	for objective, want := range map[Objective]float64{SSM: 0, KSD: 0, DSM: 0.6, MDSM: 0.9} {
		c := tinyNetworks(func(c *Config) { c.Objective, c.Sigma, c.Sigma0 = objective, 0.6, 0.9 })
		if got := c.Model().(deep).Denoise; got != want {
			t.Errorf("samples of %s are denoised by %v, want %v", objective, got, want)
		}
	}
}
