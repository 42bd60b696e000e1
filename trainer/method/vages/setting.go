package vages

import (
	"fmt"

	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/setting"
)

// Bounds of what a graph can hold: every step of the lower level and every
// refinement is in the graph of a step.
const (
	maxSteps     = 1000
	maxParticles = 1000
)

func objectives() []Objective { return []Objective{DSM, SSM, MDSM, KSD} }
func estimators() []Estimator { return []Estimator{Variational, Exact, Importance} }
func surrogates() []Surrogate { return []Surrogate{JVP, Scores, Product} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	usual := *c
	s.Place(setting.Trained)
	c.Net.Settings(s)
	s.Float("sample-share", &c.SampleShare, setting.Factor, "eblvm: share of the 2,700 steps of annealed Langevin dynamics that samples take")

	s.Place(setting.Losses)
	setting.Word(s, "objective", &c.Objective, objectives(), "score matching of the upper level: dsm (denoising), ssm (sliced), mdsm (denoising at many noise levels) or ksd (kernelised Stein discrepancy)")
	c.Noise.Settings(s)
	s.Float("bandwidth", &c.Bandwidth, setting.Positive, "ksd: bandwidth of the kernel")
	setting.Word(s, "estimator", &c.Estimator, estimators(), "what stands for the marginal's score: variational (VaES, VaGES), exact (grbm) or importance (grbm: latents that are fair coins)")
	s.Int("particles", &c.Particles, 1, maxParticles, "L, latents of each of the three sets")
	setting.Word(s, "surrogate", &c.Surrogate, surrogates(), "how the covariance is computed: jvp, scores or product (as published); all give the same gradient")
	s.Bool("without-covariance", &c.WithoutCovariance, "leave out how the posterior moves with the model (an ablation that is expected to fail)")
	s.Bool("control-variate", &c.ControlVariate, "take the slope of log p/q in the score that the loss is of")
	s.Int("refine-steps", &c.Refine.Steps, 0, maxSteps, "eblvm: C, Langevin steps of the latents")
	s.Float("refine-rate", &c.Refine.Rate, setting.Positive, "eblvm: alpha, their step size")
	s.Float("refine-noise", &c.Refine.Noise, setting.AtLeast0, "eblvm: tau, their noise")
	setting.Word(s, "lower", &c.Lower, latent.Divergences(), "divergence of the lower level: kl, or fisher for continuous latents")
	s.Float("temperature", &c.Temperature, setting.Positive, "of Gumbel-softmax samples of Bernoulli latents")
	s.Int("lower-steps", &c.LowerSteps, 0, maxSteps, "K, steps of the lower level; with 0 the posterior never changes")

	s.Place(setting.Optimisers)
	c.Scheduled.Settings(s, "learning rate, of the posterior too without --posterior-lr")
	s.Float("posterior-lr", &c.PosteriorLR, setting.AtLeast0, "learning rate of the posterior; 0 is that of --lr")

	s.Then(c.validateSettings)
	s.Then(func() error { return c.ofNoUse(usual) })
}

// ofNoUse reports what was changed of a posterior or of its particles, where the estimator
// has none. What a GRBM may need changed in a deep preset, --lower and --refine-steps, is
// Validate's.
func (c *Config) ofNoUse(usual Config) error {
	if c.Estimator == Variational {
		return nil
	}
	for _, one := range []struct {
		name     string
		got, was any
	}{
		{"particles", c.Particles, usual.Particles},
		{"surrogate", c.Surrogate, usual.Surrogate},
		{"without-covariance", c.WithoutCovariance, usual.WithoutCovariance},
		{"control-variate", c.ControlVariate, usual.ControlVariate},
		{"refine-rate", c.Refine.Rate, usual.Refine.Rate},
		{"refine-noise", c.Refine.Noise, usual.Refine.Noise},
		{"temperature", c.Temperature, usual.Temperature},
		{"lower-steps", c.LowerSteps, usual.LowerSteps},
		{"posterior-lr", c.PosteriorLR, usual.PosteriorLR},
	} {
		idle := c.Estimator == Exact || one.name != "particles"
		if idle && one.got != one.was {
			return fmt.Errorf("--%s %v is of no use to --estimator %s: leave it out, or say --estimator %s", one.name, one.got, c.Estimator, Variational)
		}
	}
	return nil
}
