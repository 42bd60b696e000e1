// Package bidvl is BiDVL, bi-level doubly variational learning of energy-based
// latent variable models, in its formal version, "offset" [algorithms.md §1,
// Eqs. 13 and 14].
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
	"errors"
	"fmt"
	"math"

	"ebtrain/trainer/nets"
	"ebtrain/trainer/optim"
)

// Order says which level is updated first in a step.
type Order string

const (
	// UpperFirst is the order of the released code.
	UpperFirst Order = "upper-lower"
	// LowerFirst is the order of the paper's Algorithm 1.
	LowerFirst Order = "lower-upper"
)

// Config is everything that defines the computation of a step.
type Config struct {
	Net   nets.Conv
	Order Order
	// FreshLatent draws new latents ĥ for the lower level; otherwise both
	// levels use the same.
	FreshLatent bool
	// VAEWeight is r′, the weight of reconstruction and prior terms.
	VAEWeight float64
	// LatentWeight is λ_h, the weight of the latent term; 0 means 1/d_h.
	LatentWeight float64
	// Upper steps E; Lower steps Q and G.
	Upper, Lower optim.Adam
}

// Defaults are the released code's settings for 32×32 images with the
// convolutional nets [algorithms.md §1.4].
func Defaults() Config {
	adam := optim.Adam{Beta1: 0, Beta2: 0.9, Eps: 1e-8, Decay: 0.998}
	c := Config{
		Net:       nets.Conv{Size: 32, Channels: 3, Width: 64, Latent: 100},
		Order:     UpperFirst,
		VAEWeight: 0.05,
		Upper:     adam,
		Lower:     adam,
	}
	c.Upper.Name, c.Upper.LR = "upper", 1e-4
	c.Lower.Name, c.Lower.LR, c.Lower.WeightDecay = "lower", 3e-4, 1e-4
	return c
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	if c.Order != UpperFirst && c.Order != LowerFirst {
		errs = append(errs, fmt.Errorf("want the order %q or %q, got %q", UpperFirst, LowerFirst, c.Order))
	}
	if !(c.VAEWeight >= 0) || math.IsInf(c.VAEWeight, 0) {
		errs = append(errs, fmt.Errorf("want a VAE weight r' of at least 0, got %v", c.VAEWeight))
	}
	if !(c.LatentWeight >= 0) || math.IsInf(c.LatentWeight, 0) {
		errs = append(errs, fmt.Errorf("want a latent weight of at least 0 (0 means 1/latent size), got %v", c.LatentWeight))
	}
	if c.Upper.Name == c.Lower.Name {
		errs = append(errs, fmt.Errorf("want two names for the optimisers of the two levels, got %q for both", c.Upper.Name))
	}
	return errors.Join(append(errs, c.Net.Validate(), c.Upper.Validate(), c.Lower.Validate())...)
}

// latentWeight is λ_h.
func (c Config) latentWeight() float64 {
	if c.LatentWeight == 0 {
		return 1 / float64(c.Net.Latent)
	}
	return c.LatentWeight
}
