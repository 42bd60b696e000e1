package vages

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Objective is the score matching of the upper level: one of these.
type Objective = score.Objective

const (
	DSM            = score.DSM
	SSM            = score.SSM
	MDSM           = score.MDSM
	KSD  Objective = "ksd" // kernelised Stein discrepancy, on pairs of data
)

// Estimator says what stands for the score of the marginal.
type Estimator string

const (
	Variational Estimator = "variational" // VaES, with the gradient VaGES
	Exact       Estimator = "exact"       // the marginal's own, which a GRBM has in closed form
	Importance  Estimator = "importance"  // of a GRBM's free energy, estimated by latents that are fair coins
)

// Surrogate says by which scalar, differentiated in θ, the covariance is had. All
// give the same gradient from the same particles; see surrogate.go.
type Surrogate string

const (
	JVP     Surrogate = "jvp"     // particles' slopes along a direction by forward mode: one pass through what knows v
	Scores  Surrogate = "scores"  // particles' slopes by a backward pass for each
	Product Surrogate = "product" // as published: the slope of a product of log densities
)

// Refine is Langevin dynamics that carries particles of continuous latents nearer to
// the posterior: Steps times h ← h − ½Rate·∇_hE + Noise·ξ.
type Refine struct {
	Steps int     // C
	Rate  float64 // α
	Noise float64 // τ
}

// Config is everything that defines the computation of a step.
type Config struct {
	Net       latent.Net
	Objective Objective
	score.Noise
	Bandwidth float64 // of KSD's kernel

	Estimator Estimator
	Particles int // L, of each of the three sets
	Surrogate Surrogate
	// WithoutCovariance leaves out how the posterior moves with θ, which is the known
	// wrong way.
	WithoutCovariance bool
	// ControlVariate takes ∇_v log p̃/q in place of ∇_v log p̃ in the score that the
	// loss is of.
	ControlVariate bool
	Refine         Refine

	Lower       latent.Divergence
	Temperature float64 // of Gumbel-softmax samples of Bernoulli units
	LowerSteps  int     // K

	optim.Scheduled         // of all steps of Adam; its rate is that of θ, and of φ unless PosteriorLR is set
	PosteriorLR     float64 // of φ; 0 is LR

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

// Group is 2 where samples are compared in pairs.
func (c *Config) Group() int {
	if c.Objective == KSD {
		return 2
	}
	return 1
}

// steps is K, 0 where there is no posterior to fit.
func (c Config) steps() int {
	if c.Estimator != Variational {
		return 0
	}
	return c.LowerSteps
}

// posteriorRate is the learning rate of φ.
func (c Config) posteriorRate() optim.Schedule { return c.RateOf(c.PosteriorLR) }

// model is the model of a config that is valid.
func (c Config) model() latent.Model { return c.Net.Model(c.Temperature) }
