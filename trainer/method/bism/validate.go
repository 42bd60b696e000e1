package bism

import (
	"errors"
	"fmt"

	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Validate says everything that is wrong with settings that fit their data.
func (c *Config) Validate() error { return errors.Join(c.validateSettings(), c.Net.Validate()) }

// validateSettings says everything that is wrong whatever the sizes of samples are, which
// Fit takes from the data.
func (c *Config) validateSettings() error {
	return errors.Join(
		setting.OneOf("objective", c.Objective, objectives()),
		setting.OneOf("lower", c.Lower, latent.Divergences()),
		setting.OneOf("inner", c.Inner, rules()),
		setting.OneOf("schedule", c.Schedule, optim.Schedules()),
		c.validateSteps(),
		c.validateNumbers(),
		c.validateRates(),
		c.Net.CheckDivergence(c.Lower),
	)
}

func (c *Config) validateSteps() error {
	var errs []error
	for _, n := range []struct {
		name, what string
		n          int
	}{{"lower-steps", "K", c.LowerSteps}, {"unroll", "N", c.Unroll}} {
		if n.n < 0 || n.n > maxSteps {
			errs = append(errs, fmt.Errorf("want --%s (%s) from 0 to %d, got %d", n.name, n.what, maxSteps, n.n))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateNumbers() error {
	return errors.Join(
		setting.Positive.Check("temperature", c.Temperature),
		setting.AtLeast0.Check("inner-lr", c.InnerLR),
		setting.Factor.Check("sample-share", c.SampleShare),
		c.Noise.Validate(),
	)
}

// validateRates says once what is wrong with both levels' rates.
func (c *Config) validateRates() error {
	if err := c.Scheduled.Validate(); err != nil {
		return err
	}
	return c.lowerRate().Validate()
}
