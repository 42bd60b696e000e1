package bism

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Objective is the score matching of the upper level: one of these.
type Objective = score.Objective

const (
	DSM  = score.DSM
	SSM  = score.SSM
	MDSM = score.MDSM
)

// Rule is the optimiser of the lower level.
type Rule string

const (
	Adam Rule = "adam"
	SGD  Rule = "sgd" // plain descent
)

// Config is everything that defines the computation of a step.
type Config struct {
	Net       latent.Net
	Objective Objective
	score.Noise

	Lower       latent.Divergence
	Temperature float64 // of Gumbel-softmax samples of Bernoulli units
	LowerSteps  int     // K
	Unroll      int     // N
	// SameNoise gives all steps of both levels the same draws. The lower level is
	// then one function of φ, which the study of the gradient's bias needs.
	SameNoise bool

	optim.Scheduled // of all steps of Adam; its rate is that of θ, and of φ unless InnerLR is set
	Inner           Rule
	InnerLR         float64 // of φ; 0 is LR

	// SampleShare is the share of an EBLVM's sampler's 2,700 steps that are taken.
	SampleShare float64
}

// Clone is a copy.
func (c *Config) Clone() algo.Config {
	d := *c
	return &d
}

// ScoreLosses says that the upper loss is of scores.
func (c *Config) ScoreLosses() bool { return true }

// LeastBatch has room for a grid of noise levels.
func (c *Config) LeastBatch() int { return c.Objective.LeastBatch() }

// upperRate is the learning rate of θ.
func (c Config) upperRate() optim.Schedule { return c.Rate() }

// lowerRate is that of φ.
func (c Config) lowerRate() optim.Schedule { return c.RateOf(c.InnerLR) }

// adam is the rule of all steps of Adam.
func (c Config) adam() optim.PureAdam {
	a := c.Pure()
	a.Differentiable = true
	return a
}

// inner is the rule of the lower level.
func (c Config) inner() optim.Rule {
	if c.Inner == SGD {
		return optim.Descent{}
	}
	return c.adam()
}
