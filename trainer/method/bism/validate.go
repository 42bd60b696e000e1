package bism

import (
	"errors"
	"fmt"
	"slices"

	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
	"ebtrain/trainer/setting"
)

// Validate says everything that is wrong with the settings.
func (c *Config) Validate() error {
	return errors.Join(
		oneOf("model", c.Net.Kind, GRBM, EBLVM),
		oneOf("objective", c.Objective, DSM, SSM, MDSM),
		oneOf("lower", c.Lower, KL, Fisher),
		oneOf("inner", c.Inner, Adam, SGD),
		oneOf("sigma-grid", c.Levels.Spacing, score.Spacings()...),
		oneOf("schedule", c.Schedule, optim.Constant, optim.Cosine),
		c.validateSteps(),
		c.validateNumbers(),
		c.validateRates(),
		c.contradictions(),
		c.Net.validate(),
	)
}

// oneOf says that a word is not one of its setting's.
func oneOf[T ~string](name string, got T, words ...T) error {
	if slices.Contains(words, got) {
		return nil
	}
	return fmt.Errorf("unknown --%s %q: want %s", name, string(got), setting.Choices(words))
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
	err := errors.Join(
		setting.Positive.Check("sigma", c.Sigma),
		setting.Positive.Check("sigma-min", c.Levels.Least),
		setting.Positive.Check("sigma-max", c.Levels.Most),
		setting.Positive.Check("sigma0", c.Sigma0),
		setting.Positive.Check("temperature", c.Temperature),
		setting.AtLeast0.Check("inner-lr", c.InnerLR),
	)
	if l := c.Levels; err == nil && l.Least >= l.Most {
		return fmt.Errorf("want --sigma-min below --sigma-max, got %v and %v", l.Least, l.Most)
	}
	return err
}

// validateRates checks what all optimisers share. The upper level's is Adam in
// any case, so its betas matter with plain inner steps too.
func (c *Config) validateRates() error {
	err := errors.Join(setting.Moment.Check("beta1", c.Beta1), setting.Moment.Check("beta2", c.Beta2))
	if c.Beta2 == 1 {
		err = errors.New("want --beta2 below 1: with 1 Adam's second moment stays 0, and its correction divides by 0")
	}
	for _, s := range []optim.Schedule{c.upperRate(), c.lowerRate()} {
		if e := s.Validate(); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// contradictions are settings that are good by themselves only.
func (c *Config) contradictions() error {
	if c.Net.Kind == GRBM && c.Lower == Fisher {
		return errors.New("--lower fisher needs a gradient in the latents, and those of --model grbm are Bernoulli: say --lower kl, or --model eblvm")
	}
	return nil
}

func (n Net) validate() error {
	if n.C < 1 || n.H < 1 || n.W < 1 || n.Hidden < 1 {
		return fmt.Errorf("want sizes of samples and a number of latents of at least 1, got %dx%dx%d and %d", n.C, n.H, n.W, n.Hidden)
	}
	if n.Kind == EBLVM {
		return n.eblvm().Validate()
	}
	return nil
}
