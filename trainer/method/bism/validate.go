package bism

import (
	"errors"
	"fmt"

	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Validate says everything that is wrong with the settings.
func (c *Config) Validate() error {
	return errors.Join(
		setting.OneOf("model", c.Net.Kind, kinds()),
		setting.OneOf("objective", c.Objective, objectives()),
		setting.OneOf("lower", c.Lower, divergences()),
		setting.OneOf("inner", c.Inner, rules()),
		setting.OneOf("schedule", c.Schedule, optim.Schedules()),
		c.validateSteps(),
		c.validateNumbers(),
		c.validateRates(),
		c.adam().Validate(), // the upper level's, with plain inner steps, too
		c.contradictions(),
		c.Net.validate(),
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
		setting.Positive.Check("sigma", c.Sigma),
		setting.Positive.Check("sigma0", c.Sigma0),
		setting.Positive.Check("temperature", c.Temperature),
		setting.AtLeast0.Check("inner-lr", c.InnerLR),
		setting.Factor.Check("sample-share", c.SampleShare),
		c.Levels.Validate(),
	)
}

func (c *Config) validateRates() error {
	if err := c.upperRate().Validate(); err != nil {
		return err
	}
	return c.lowerRate().Validate()
}

// contradictions are settings that are good by themselves only.
func (c *Config) contradictions() error {
	if c.Net.Kind == GRBM && c.Lower == Fisher {
		return errors.New("--lower fisher needs a gradient in the latents, and those of --model grbm are Bernoulli: say --lower kl, or --model eblvm")
	}
	return nil
}

func (n Net) validate() error {
	if n.C < 1 || n.H < 1 || n.W < 1 {
		return fmt.Errorf("want samples of at least one value, got %dx%dx%d", n.C, n.H, n.W)
	}
	switch {
	case n.Kind == EBLVM && n.H != n.W:
		return fmt.Errorf("--model eblvm takes square pictures, got %dx%d", n.H, n.W)
	case n.Kind == EBLVM:
		return n.eblvm().Validate()
	}
	return grbm.Size{Visible: n.C * n.H * n.W, Hidden: n.Hidden}.Validate()
}
