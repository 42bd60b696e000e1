package bism

import (
	"ebtrain/trainer/model/score"
	"ebtrain/trainer/setting"
)

// Bounds of what a graph can hold: every inner step is in the graph of a step.
const (
	maxSteps  = 1000
	maxHidden = 1 << 16
	maxWidth  = 1 << 12
	maxDepth  = 32
)

func kinds() []Kind             { return []Kind{GRBM, EBLVM} }
func objectives() []Objective   { return []Objective{DSM, SSM, MDSM} }
func divergences() []Divergence { return []Divergence{KL, Fisher} }
func rules() []Rule             { return []Rule{Adam, SGD} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	setting.Word(s, "model", &c.Net.Kind, kinds(), "the model: grbm (Bernoulli latents, linear posterior) or eblvm (deep, Gaussian latents, convolutional posterior)")
	s.Int("hidden", &c.Net.Hidden, 1, maxHidden, "d_h, latent units")
	s.Int("width", &c.Net.Width, 1, maxWidth, "eblvm: channels of its first layer (64 or 128 in the paper)")
	s.Int("depth", &c.Net.Depth, 1, maxDepth, "eblvm: k, which gives 6k convolutional layers")
	s.Int("posterior-width", &c.Net.PosteriorWidth, 1, maxWidth, "eblvm: channels of the posterior's first layer (64 in the paper)")
	s.Float("sample-share", &c.SampleShare, setting.Factor, "eblvm: share of the 2,700 steps of annealed Langevin dynamics that samples take")

	s.Place(setting.Losses)
	setting.Word(s, "objective", &c.Objective, objectives(), "score matching of the upper level: dsm (denoising), ssm (sliced) or mdsm (denoising at many noise levels)")
	s.Float("sigma", &c.Sigma, setting.Positive, "dsm: noise level")
	s.Float("sigma-min", &c.Levels.Least, setting.Positive, "mdsm: least noise level")
	s.Float("sigma-max", &c.Levels.Most, setting.Positive, "mdsm: largest noise level")
	setting.Word(s, "sigma-grid", &c.Levels.Spacing, score.Spacings(), "mdsm: how the levels are spread over the batch: linear or log")
	s.Float("sigma0", &c.Sigma0, setting.Positive, "mdsm: scale of the score that is matched")
	setting.Word(s, "lower", &c.Lower, divergences(), "divergence of the lower level: kl, or fisher for continuous latents")
	s.Float("temperature", &c.Temperature, setting.Positive, "of Gumbel-softmax samples of Bernoulli latents")
	s.Int("lower-steps", &c.LowerSteps, 0, maxSteps, "K, steps of the lower level that are kept; with 0 the posterior never changes")
	s.Int("unroll", &c.Unroll, 0, maxSteps, "N, steps of the lower level that the upper one is differentiated through")
	s.Bool("same-noise", &c.SameNoise, "give all steps of both levels the same draws (for studies of the gradient's bias)")

	s.Place(setting.Optimisers)
	c.Scheduled.Settings(s, "learning rate, of the posterior too without --inner-lr")
	setting.Word(s, "inner", &c.Inner, rules(), "optimiser of the lower level: adam, or sgd (plain descent)")
	s.Float("inner-lr", &c.InnerLR, setting.AtLeast0, "learning rate of the posterior; 0 is that of --lr")

	s.Then(c.Validate)
}
