// Package bidvl is BiDVL, bi-level doubly variational learning of energy-based
// latent variable models [ALGORITHMS.md §1], with every variant of its paper as
// a switch. The formal version is "offset" [Eqs. 13 and 14].
//
// Three networks: the energy net E(v), the inference net Q(h|v) = N(μ(v),
// diag σ²(v)), and the generator G(h). The upper level trains E, the lower
// level trains ω = (Q, G). A training step is one graph: the level that comes
// second sees the weights that the first has stepped.
//
// Sharing: where both levels generate from the same latents with the same
// weights, the graph holds that pass once; running statistics still advance as
// often as the released code's do.
package bidvl

import (
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
)

// Order says which level is updated first in a step.
type Order string

const (
	// UpperFirst is the order of the released code.
	UpperFirst Order = "upper-lower"
	// LowerFirst is the order of the paper's Algorithm 1.
	LowerFirst Order = "lower-upper"
)

// LatentTerm says how KL(p(v̂|ĥ)p(ĥ) ‖ q(ĥ|v̂)) enters the losses.
type LatentTerm string

const (
	// Offset is λ_h⟨‖μ(v̂) − ĥ‖²⟩ in the lower level, for G alone: what the upper
	// level would do against it is left out, and offsets it [Eqs. 13 and 14].
	Offset LatentTerm = "offset"
	// NotOffset is λ_h⟨‖h̃ − ĥ‖²⟩ with h̃ ~ q(h|v̂), for Q and G; the upper level
	// steps Q against λ_h⟨KL(q(h|v̂) ‖ p(h))⟩ [Eqs. 11 and 12].
	NotOffset LatentTerm = "not-offset"
	// NoLatent leaves the term out of both levels.
	NoLatent LatentTerm = "none"
)

// UpperLoss says how the upper level tells data from samples.
type UpperLoss string

const (
	// Difference is ⟨E(v)⟩ − ⟨E(v̂)⟩ [Eq. 14].
	Difference UpperLoss = "difference"
	// Hinge is ⟨relu(1 + E(v))⟩ + ⟨relu(1 − E(v̂))⟩ [Eq. 23].
	Hinge UpperLoss = "hinge"
)

// Ratio says what r(v) weighs each image's reconstruction and prior terms with,
// besides r′. E has no gradient in it.
type Ratio string

const (
	// ConstantRatio is 1.
	ConstantRatio Ratio = "constant"
	// SigmoidRatio is the bias term, sigmoid(⟨E⟩ − E(v)).
	SigmoidRatio Ratio = "sigmoid"
	// ClampRatio is the released code's alternative, exp(⟨E⟩ − E(v)) within
	// [0.8, 1.2].
	ClampRatio Ratio = "clamp"
)

// LowerLevel says which divergence the lower level minimises.
type LowerLevel string

const (
	// Symmetric adds KL(data·q ‖ p_ω), the reconstruction and prior terms.
	Symmetric LowerLevel = "symmetric"
	// Canonical is the ablation without them. It is expected to diverge.
	Canonical LowerLevel = "canonical"
)

// DefaultLatentWeight, as Config.LatentWeight, is 1/d_h.
const DefaultLatentWeight = -1

// Config is everything that defines the computation of a step.
type Config struct {
	Net   nets.Spec
	Order Order
	// LowerSteps is N, the steps of the lower level in a step; each has noise of
	// its own.
	LowerSteps int
	// FreshLatent draws new latents ĥ for the lower level's first step; otherwise
	// it has those of the upper level.
	FreshLatent bool
	LatentTerm  LatentTerm
	UpperLoss   UpperLoss
	LowerLevel  LowerLevel
	Ratio       Ratio
	// Undecoupled gives E the latents too, E(v, h), so that the posterior of the
	// model is not Q. The lower level then also minimises KL(q(h|v) ‖ p(h|v)).
	Undecoupled bool
	// VAEWeight is r′, the weight of reconstruction and prior terms.
	VAEWeight float64
	// LatentWeight is λ_h, the weight of the latent term: above 0, or
	// DefaultLatentWeight.
	LatentWeight float64
	// Upper steps E; Lower steps Q, and G too unless Generator does.
	Upper, Lower optim.Adam
	Generator    *optim.Adam `json:",omitempty"`
}

// latentWeight is λ_h.
func (c Config) latentWeight() float64 {
	if c.LatentWeight == DefaultLatentWeight {
		return 1 / float64(c.Net.Latent)
	}
	return c.LatentWeight
}

// Resolved has every default replaced by its value.
func (c Config) Resolved() Config {
	if c.LatentTerm != NoLatent && c.Net.Latent > 0 {
		c.LatentWeight = c.latentWeight()
	}
	return c
}

// hasVAE says whether reconstruction and prior terms are in the lower level.
func (c Config) hasVAE() bool { return c.LowerLevel == Symmetric }

// optimiser is an optimiser and how many steps it takes in a step.
type optimiser struct {
	optim.Adam
	steps int
}

func (c Config) optimisers() []optimiser {
	lower := c.LowerSteps
	if c.LatentTerm == NotOffset {
		lower++ // for Q, in the upper level
	}
	all := []optimiser{{c.Upper, 1}, {c.Lower, lower}}
	if c.Generator != nil {
		all = append(all, optimiser{*c.Generator, c.LowerSteps})
	}
	return all
}
