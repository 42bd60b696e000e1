package sm

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/langevin"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Kind says which model is trained.
type Kind string

const (
	// GRBM is the Gaussian restricted Boltzmann machine [ALGORITHMS.md §2.2].
	GRBM Kind = "grbm"
	// EBM is the visible energy-based model: residual, with a quadratic head
	// [ALGORITHMS.md §2.3].
	EBM Kind = "ebm"
)

// Objective is the loss: one of these.
type Objective = score.Objective

const (
	SSM  = score.SSM
	DSM  = score.DSM
	MDSM = score.MDSM
)

// Trace says how SSM has the trace of the score's derivative, which slices estimate.
type Trace string

const (
	Exact  Trace = "exact"  // in closed form: the mean over all directions
	Sliced Trace = "sliced" // along one random direction (±1) for each sample
)

// Net are the sizes of the model.
type Net struct {
	Kind    Kind
	C, H, W int // of a sample
	Hidden  int // of a GRBM: hidden units
	Width   int // of an EBM: channels of its first layer
	Depth   int // of an EBM: k, residual blocks of a level
}

// Config is everything that defines the computation of a step.
type Config struct {
	Net       Net
	Objective Objective
	Trace     Trace // of SSM
	score.Noise

	optim.Scheduled

	// SampleShare is the share of an EBM's sampler's 2,700 steps that are taken.
	SampleShare float64
}

// Clone is a copy.
func (c *Config) Clone() algo.Config {
	d := *c
	return &d
}

// ScoreLosses says that all losses are of scores.
func (c *Config) ScoreLosses() bool { return true }

// LeastBatch has room for a grid of noise levels.
func (c *Config) LeastBatch() int { return c.Objective.LeastBatch() }

func (n Net) grbm() grbm.Size { return grbm.Size{Visible: n.C * n.H * n.W, Hidden: n.Hidden} }

func (n Net) trunk() eblvm.Trunk {
	return eblvm.Trunk{Size: n.H, Channels: n.C, Width: n.Width, Blocks: n.Depth}
}

// sampler is that of an EBM.
func (c *Config) sampler() langevin.Annealed {
	a := langevin.Published().Shortened(c.SampleShare)
	a.Denoise = c.Noise.Of(c.Objective)
	return a
}
