package vages

import (
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
	s.Place(setting.Trained)
	c.Net.Settings(s)
	s.Float("sample-share", &c.SampleShare, setting.Factor, "eblvm: share of the 2,700 steps of annealed Langevin dynamics that samples take")

	s.Place(setting.Losses)
	setting.Word(s, "objective", &c.Objective, objectives(), "score matching of the upper level: dsm (denoising), ssm (sliced), mdsm (denoising at many noise levels) or ksd (kernelised Stein discrepancy)")
	c.Noise.Settings(s, &c.Objective)
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
	c.Scheduled.Settings(s, "learning rate, of the posterior too without --posterior-lr", "the upper level's gradient")
	s.Float("posterior-lr", &c.PosteriorLR, setting.AtLeast0, "learning rate of the posterior; 0 is that of --lr")

	s.Then(c.validateSettings)
	c.idle(s)
}

// idle says what has no effect: of a posterior or of its particles, where the estimator
// has none, and of other parts that are left out. What a GRBM may need changed in a deep
// preset, --lower and --refine-steps, is Validate's.
func (c *Config) idle(s *setting.Set) {
	setting.For(s, "model", &c.Net.Kind, latent.EBLVM, "sample-share")
	setting.For(s, "model", &c.Net.Kind, latent.GRBM, "temperature")
	setting.For(s, "objective", &c.Objective, KSD, "bandwidth")
	setting.For(s, "estimator", &c.Estimator, Variational,
		"surrogate", "without-covariance", "control-variate", "refine-rate", "refine-noise", "temperature", "lower-steps", "posterior-lr")
	s.While(func() bool { return c.Estimator == Exact }, "--estimator exact", "--estimator variational", "particles")
	s.While(func() bool { return c.Refine.Steps == 0 }, "--refine-steps 0", "--refine-steps 1 or more", "refine-rate", "refine-noise")
	s.While(func() bool { return c.WithoutCovariance }, "--without-covariance", "--without-covariance=false", "surrogate")
	s.While(func() bool { return c.LowerSteps == 0 }, "--lower-steps 0", "--lower-steps 1 or more", "posterior-lr")
	s.While(func() bool { return c.LowerSteps == 0 && c.Net.Kind == latent.EBLVM }, "--lower-steps 0", "--lower-steps 1 or more", "lower")
}
