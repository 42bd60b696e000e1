package lebm

import (
	"fmt"

	"ebtrain/trainer/setting"
)

// maxSteps bounds K₀ and K₁: every transition is in the graph of a step.
const maxSteps = 1000

func priors() []Prior { return []Prior{EBM, Gaussian} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	usual := *c
	s.Place(setting.Trained)
	setting.Word(s, "prior", &c.Prior, priors(), "of the latents: ebm, an energy that is learnt, or gaussian, N(0, I), which has none (what the paper compares to)")
	s.Int("latent", &c.Net.Latent, 1, 1<<16, "size of the latent vector")
	if c.Text == nil {
		s.Int("ngf", &c.Net.NGF, 1, 1<<12, "base width of the generator")
	} else {
		c.Text.settings(s)
	}
	s.Int("nef", &c.Net.NEF, 1, 1<<14, "width of the two hidden layers of the energy")

	s.Place(setting.Losses)
	s.Int("prior-steps", &c.PriorChain.Steps, 0, maxSteps, "K0, transitions of the chain that draws latents from the prior")
	s.Float("prior-step-size", &c.PriorChain.Size, setting.Positive, "s0, their step size")
	s.Int("posterior-steps", &c.PosteriorChain.Steps, 1, maxSteps, "K1, transitions of the chain that infers the latents of a sample")
	s.Float("posterior-step-size", &c.PosteriorChain.Size, setting.Positive, "s1, their step size")
	cool := c.anneal(s)
	if c.Text == nil {
		s.Float("sigma", &c.Sigma, setting.Positive, "noise level of a picture around what the generator makes")
	}

	s.Place(setting.Optimisers)
	s.Float("lr-generator", &c.Generator.LR, setting.Positive, "Adam's learning rate for the generator")
	s.Float("lr-energy", &c.Energy.LR, setting.Positive, "Adam's learning rate for the energy")
	s.Float("beta1", &c.Generator.Beta1, setting.Moment, "Adam's beta1")
	s.Float("beta2", &c.Generator.Beta2, setting.Moment, "Adam's beta2")
	s.Float("lr-decay", &c.Generator.Decay, setting.Factor, "factor on the learning rates after each epoch")
	if c.Text == nil {
		c.Generator.Limits.Settings(s, "each network's gradient")
	} else {
		c.Generator.Warmups(s)
	}
	setting.For(s, "prior", &c.Prior, EBM, "prior-steps", "prior-step-size", "nef", "lr-energy")
	s.Then(func() error { return cool(usual) })
	s.Then(func() error {
		c.Energy.Beta1, c.Energy.Beta2, c.Energy.Decay = c.Generator.Beta1, c.Generator.Beta2, c.Generator.Decay
		c.Energy.Limits = c.Generator.Limits
		return nil
	})
}

// anneal adds the settings of a posterior's chain with long steps first and of one with
// less noise. What it returns takes them, and reports what they leave no use for.
func (c *Config) anneal(s *setting.Set) func(usual Config) error {
	h := &c.PosteriorChain
	t := h.temperature()
	s.Bool("posterior-annealed", &h.Annealed, "take long steps of it first, 0.8 down to 0.05, where the latents of sentences collapse")
	s.Float("posterior-temperature", &t, setting.Positive, "factor on its noise; published with the above are 0.05 to 0.2")
	return func(usual Config) error {
		if h.Annealed && h.Size != usual.PosteriorChain.Size {
			return fmt.Errorf("--posterior-step-size %v is of no use to --posterior-annealed, which has sizes of its own: leave one of them out", h.Size)
		}
		if h.Temperature = t; t == 1 {
			h.Temperature = 0
		}
		return nil
	}
}
