package lebm

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
)

// Prior says what latents are drawn from before a sample is seen.
type Prior string

const (
	EBM      Prior = "ebm"      // exp(−E(z))·N(z; 0, I)
	Gaussian Prior = "gaussian" // N(0, I): no E, and nothing learns but G
)

// Config is everything that defines the computation of a step.
type Config struct {
	Net            Net
	Prior          Prior
	PriorChain     Chain   // K₀ and s₀; of no use to the Gaussian prior
	PosteriorChain Chain   // K₁ and s₁
	Sigma          float64 // σ, of the noise around what G makes
	// Energy steps E, and Generator G.
	Energy, Generator optim.Adam
	// Text is what the networks of sentences have besides; nil of pictures.
	Text *Text `json:",omitempty"`
}

// Clone is a copy.
func (c *Config) Clone() algo.Config {
	d := *c
	d.Text = c.Text.Clone()
	return &d
}

// SetNet takes the networks of that name at the paper's sizes.
func (c *Config) SetNet(name string) (err error) {
	c.Net, err = netNamed(name)
	if c.Text = nil; c.Net.Shape == LSTM {
		c.Text = usualText()
	}
	return err
}

// prior is the chain of z⁻: one of no transitions for the Gaussian prior.
func (c Config) prior() Chain {
	if c.Prior == Gaussian {
		return Chain{}
	}
	return c.PriorChain
}

// optimisers are those that take a step.
func (c Config) optimisers() []optim.Adam {
	if c.Prior == Gaussian {
		return []optim.Adam{c.Generator}
	}
	return []optim.Adam{c.Generator, c.Energy}
}
