package lebm

import (
	"errors"
	"fmt"

	"ebtrain/trainer/setting"
)

// Validate says everything that is wrong with the settings.
func (c *Config) Validate() error {
	errs := []error{
		setting.OneOf("prior", c.Prior, priors()),
		c.validateChains(),
		setting.Positive.Check("sigma", c.Sigma),
		c.Net.Validate(),
	}
	switch text := c.Net.Shape == LSTM; {
	case text != (c.Text != nil):
		errs = append(errs, fmt.Errorf("the networks %q and settings of text do not go together", c.Net.Shape))
	case text:
		errs = append(errs, c.Text.validate(c.Net.Latent))
	}
	for _, a := range c.optimisers() {
		errs = append(errs, a.Validate())
	}
	if c.Energy.Name == c.Generator.Name {
		errs = append(errs, fmt.Errorf("want a name for each optimiser, got %q for two", c.Energy.Name))
	}
	return errors.Join(errs...)
}

func (c *Config) validateChains() error {
	var errs []error
	if k := c.PriorChain.Steps; c.Prior == EBM && k == 0 {
		errs = append(errs, errors.New("--prior-steps 0 leaves the samples of the EBM prior at N(0, I): take at least 1, or say --prior gaussian"))
	} else if k < 0 || k > maxSteps {
		errs = append(errs, fmt.Errorf("want --prior-steps (K0) from 0 to %d, got %d", maxSteps, k))
	}
	if k := c.PosteriorChain.Steps; k < 1 || k > maxSteps {
		errs = append(errs, fmt.Errorf("want --posterior-steps (K1) from 1 to %d, got %d: with none, latents know nothing of the sample", maxSteps, k))
	}
	if c.PriorChain.Annealed || c.PriorChain.Temperature != 0 {
		errs = append(errs, errors.New("the prior's chain is annealed or has a temperature: only the posterior's may"))
	}
	return errors.Join(append(errs,
		setting.AtLeast0.Check("posterior-temperature", c.PosteriorChain.Temperature),
		setting.Positive.Check("prior-step-size", c.PriorChain.Size),
		setting.Positive.Check("posterior-step-size", c.PosteriorChain.Size))...)
}
