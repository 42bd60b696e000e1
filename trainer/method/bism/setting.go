package bism

import (
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/setting"
)

// maxSteps bounds what a graph can hold: every inner step is in the graph of a step.
const maxSteps = 1000

func objectives() []Objective { return []Objective{DSM, SSM, MDSM} }
func rules() []Rule           { return []Rule{Adam, SGD} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Net.Settings(s)
	s.Float("sample-share", &c.SampleShare, setting.Factor, "eblvm: share of the 2,700 steps of annealed Langevin dynamics that samples take")

	s.Place(setting.Losses)
	setting.Word(s, "objective", &c.Objective, objectives(), "score matching of the upper level: dsm (denoising), ssm (sliced) or mdsm (denoising at many noise levels)")
	c.Noise.Settings(s, &c.Objective)
	setting.Word(s, "lower", &c.Lower, latent.Divergences(), "divergence of the lower level: kl, or fisher for continuous latents")
	s.Float("temperature", &c.Temperature, setting.Positive, "of Gumbel-softmax samples of Bernoulli latents")
	s.Int("lower-steps", &c.LowerSteps, 0, maxSteps, "K, steps of the lower level that are kept; with 0 the posterior never changes")
	s.Int("unroll", &c.Unroll, 0, maxSteps, "N, steps of the lower level that the upper one is differentiated through")
	s.Bool("same-noise", &c.SameNoise, "give all steps of both levels the same draws (for studies of the gradient's bias)")

	s.Place(setting.Optimisers)
	c.Scheduled.Settings(s, "learning rate, of the posterior too without --inner-lr", "the upper level's gradient")
	setting.Word(s, "inner", &c.Inner, rules(), "optimiser of the lower level: adam, or sgd (plain descent)")
	s.Float("inner-lr", &c.InnerLR, setting.AtLeast0, "learning rate of the posterior; 0 is that of --lr")

	s.Then(c.validateSettings)
	c.idle(s)
}

// idle says what has no effect: of another model, and of a lower level without steps. What a
// GRBM may need changed in a deep preset, --lower, is Validate's.
func (c *Config) idle(s *setting.Set) {
	setting.For(s, "model", &c.Net.Kind, latent.EBLVM, "sample-share")
	setting.For(s, "model", &c.Net.Kind, latent.GRBM, "temperature")
	none := func() bool { return c.LowerSteps+c.Unroll == 0 }
	const to, instead = "--lower-steps 0 with --unroll 0", "--lower-steps 1 or more"
	s.While(none, to, instead, "same-noise", "inner", "inner-lr")
	s.While(func() bool { return none() && c.Net.Kind == latent.EBLVM }, to, instead, "lower")
}
