package bidvl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/setting"
)

// maxLowerSteps bounds N: every lower step is in the graph of a step.
const maxLowerSteps = 100

// Orders are the values of Config.Order, and so on.
func Orders() []Order           { return []Order{UpperFirst, LowerFirst} }
func LatentTerms() []LatentTerm { return []LatentTerm{Offset, NotOffset, NoLatent} }
func UpperLosses() []UpperLoss  { return []UpperLoss{Difference, Hinge} }
func LowerLevels() []LowerLevel { return []LowerLevel{Symmetric, Canonical} }
func Ratios() []Ratio           { return []Ratio{ConstantRatio, SigmoidRatio, ClampRatio} }

// oneOf says that a setting is not one of its values.
func oneOf[T ~string](what string, got T, values []T) error {
	if slices.Contains(values, got) {
		return nil
	}
	return fmt.Errorf("want the %s %s, got %q", what, setting.Choices(values), string(got))
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	errs := []error{
		oneOf("order", c.Order, Orders()),
		oneOf("latent term", c.LatentTerm, LatentTerms()),
		oneOf("upper loss", c.UpperLoss, UpperLosses()),
		oneOf("lower level", c.LowerLevel, LowerLevels()),
		oneOf("ratio", c.Ratio, Ratios()),
		c.validateNumbers(),
		c.validateOptimisers(),
		c.Net.Validate(),
	}
	return errors.Join(append(errs, c.contradictions()...)...)
}

func (c Config) validateNumbers() error {
	var errs []error
	if c.LowerSteps < 1 || c.LowerSteps > maxLowerSteps {
		errs = append(errs, fmt.Errorf("want from 1 to %d lower steps, got %d", maxLowerSteps, c.LowerSteps))
	}
	if !(c.VAEWeight >= 0 && c.VAEWeight <= math.MaxFloat32) {
		errs = append(errs, fmt.Errorf("want a VAE weight r' of at least 0, and finite in float32, got %v", c.VAEWeight))
	}
	switch w := c.LatentWeight; {
	case w == DefaultLatentWeight || w > 0 && w <= math.MaxFloat32:
	case w == 0 && c.LatentTerm == NoLatent: // the weight of a term that is not there
	case w == 0:
		errs = append(errs, fmt.Errorf("a latent weight of 0 leaves the latent term out: ask for the latent term %q instead", NoLatent))
	default:
		errs = append(errs, fmt.Errorf("want a latent weight above 0, and finite in float32, or %d for 1/latent size, got %v", DefaultLatentWeight, w))
	}
	return errors.Join(errs...)
}

func (c Config) validateOptimisers() error {
	var errs []error
	names := map[string]bool{}
	for _, a := range c.optimisers() {
		if names[a.Name] {
			errs = append(errs, fmt.Errorf("want a name for each optimiser, got %q for two", a.Name))
		}
		names[a.Name] = true
		errs = append(errs, a.Validate())
	}
	return errors.Join(errs...)
}

// contradictions are settings that make no sense together.
func (c Config) contradictions() []error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	net, _ := c.Net.Build() // of sizes that are wrong, Validate says so
	_, joint := net.(nets.Joint)
	refuse(c.Net.EnergyAbove0() && c.UpperLoss == Hinge,
		"the hinge loss pushes energies of data below -1, and those of the %s networks are never below 0: take a residual network or the upper loss %q", c.Net.Name(), Difference)
	refuse(!joint && c.Undecoupled,
		"the undecoupled model needs an energy net of images and latents, and the %s networks have none: take conv32 or conv64", c.Net.Name())
	refuse(c.Undecoupled && c.LatentTerm == NotOffset,
		"the undecoupled model has nothing to offset: its latent term is %q or %q", Offset, NoLatent)
	refuse(c.Undecoupled && c.Ratio != ConstantRatio,
		"the ratio %q needs the energy of an image alone, which the undecoupled model does not have: take the ratio %q", c.Ratio, ConstantRatio)
	bare := c.withoutVAE()
	refuse(bare != "" && c.Ratio != ConstantRatio,
		"the ratio %q weighs reconstruction and prior terms, and the lower level %s has none: take the ratio %q", c.Ratio, bare, ConstantRatio)
	refuse(bare != "" && !c.Undecoupled && c.LatentTerm == NoLatent,
		"without a latent term the lower level %s has no use for the inference net: take the latent term %q or %q", bare, Offset, NotOffset)
	return errs
}

// withoutVAE says which lower level it is that learns nothing of reconstruction and prior
// terms, because there are none or because they count nothing; "" where they count.
func (c Config) withoutVAE() string {
	switch {
	case !c.hasVAE():
		return strconv.Quote(string(Canonical))
	case c.VAEWeight == 0:
		return "with a VAE weight r' of 0"
	}
	return ""
}
