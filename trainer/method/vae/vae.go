// Package vae is the variational autoencoder [Kingma and Welling 2014] with the
// inference net Q and the generator G of BiDVL, whose baseline it is
// [ALGORITHMS.md §5.1]: no energy net, and one level.
//
// The model is h ~ N(0, I), v|h ~ N(G(h), s²I), with the approximate posterior
// q(h|v) = N(μ(v), diag σ²(v)). Minimised is the negative evidence lower bound, the
// mean over the batch of
//
//	−log N(v; G(h), s²I) + β·KL(q(h|v) ‖ N(0, I)),  h = μ + σ⊙ε,  ε ~ N(0, I)
//
// in nats: one draw of h for a sample, the KL in closed form. With β = 1 and any
// s it bounds −log p(v) from above.
//
// Configs are plain values; a graph under construction belongs to one goroutine.
package vae

import (
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Config is everything that defines the computation of a step.
type Config struct {
	Net nets.Spec
	// Variance is s², of each value given the latents.
	Variance float64
	// Beta weighs the divergence from the prior: 1 is the bound itself, and 0 leaves
	// the latents without a prior.
	Beta float64
	Adam optim.Adam // steps both networks
}

// Clone is a copy that shares nothing with c.
func (c *Config) Clone() algo.Config { d := *c; return &d }

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return *c }

// SetNet takes the networks of that name at the papers' sizes.
func (c *Config) SetNet(name string) (err error) {
	c.Net, err = nets.Named(name)
	return err
}

// Fit takes the number of channels from the data.
func (c *Config) Fit(s data.Schema) error { return c.Net.Fit(s) }

// Takes says which pictures the networks take.
func (c Config) Takes() algo.Inputs { return c.Net.Takes() }

// Steadier is that of the networks.
func (c Config) Steadier() string { return c.Net.Steadier() }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Net.Settings(s)
	s.Place(setting.Losses)
	s.Float("decoder-variance", &c.Variance, setting.Positive, "s^2, variance of each value given the latents: the squared error is divided by twice of it (BiDVL's is 0.5)")
	s.Float("beta", &c.Beta, setting.AtLeast0, "weight of the divergence from the prior; 1 is the evidence lower bound")
	s.Place(setting.Optimisers)
	c.Adam.Settings(s)
	s.Float("lr-decay", &c.Adam.Decay, setting.Factor, "factor on the learning rate after each epoch")
	s.Float("weight-decay", &c.Adam.WeightDecay, setting.AtLeast0, "L2 weight decay")
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	return errors.Join(
		setting.Positive.Check("decoder-variance", c.Variance),
		setting.AtLeast0.Check("beta", c.Beta),
		c.Adam.Validate(),
		c.Net.Validate(),
	)
}

// build are the networks.
func (c Config) build() (nets.Networks, error) {
	net, err := c.Net.Build()
	if err != nil {
		return nil, fmt.Errorf("vae: %w", err)
	}
	return net, nil
}
