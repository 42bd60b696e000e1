package vages

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
		setting.OneOf("estimator", c.Estimator, estimators()),
		setting.OneOf("surrogate", c.Surrogate, surrogates()),
		setting.OneOf("lower", c.Lower, latent.Divergences()),
		setting.OneOf("schedule", c.Schedule, optim.Schedules()),
		c.validateCounts(),
		c.validateNumbers(),
		c.validateRates(),
		c.contradictions(),
		c.Net.CheckDivergence(c.Lower),
	)
}

func (c *Config) validateCounts() error {
	var errs []error
	for _, n := range []struct {
		name, what     string
		n, least, most int
	}{{"lower-steps", "K", c.LowerSteps, 0, maxSteps}, {"particles", "L", c.Particles, 1, maxParticles}, {"refine-steps", "C", c.Refine.Steps, 0, maxSteps}} {
		if n.n < n.least || n.n > n.most {
			errs = append(errs, fmt.Errorf("want --%s (%s) from %d to %d, got %d", n.name, n.what, n.least, n.most, n.n))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateNumbers() error {
	return errors.Join(
		setting.Positive.Check("bandwidth", c.Bandwidth),
		setting.Positive.Check("temperature", c.Temperature),
		setting.Positive.Check("refine-rate", c.Refine.Rate),
		setting.AtLeast0.Check("refine-noise", c.Refine.Noise),
		setting.AtLeast0.Check("posterior-lr", c.PosteriorLR),
		setting.Factor.Check("sample-share", c.SampleShare),
		c.Noise.Validate(),
	)
}

// contradictions are settings that are good by themselves only.
func (c *Config) contradictions() error {
	variational, deep := c.Estimator == Variational, c.Net.Kind == latent.EBLVM
	switch {
	case !variational && deep:
		return fmt.Errorf("--estimator %s is of --model grbm, whose latents are Bernoulli: say --estimator variational", c.Estimator)
	case variational && !c.WithoutCovariance && c.Particles < 2:
		return fmt.Errorf("a covariance over --particles %d is none: take at least 2, or say --without-covariance", c.Particles)
	case c.Refine.Steps > 0 && !deep:
		return errors.New("--refine-steps needs a gradient in the latents, and those of --model grbm are Bernoulli: say --refine-steps 0, or --model eblvm")
	case c.Objective == SSM && c.Surrogate == Product:
		return errors.New("--surrogate product is for losses that are linear in the score's change, and sliced score matching is not: say --surrogate jvp")
	}
	return nil
}

// validateRates says once what is wrong with both levels' rates.
func (c *Config) validateRates() error {
	if err := c.Scheduled.Validate(); err != nil {
		return err
	}
	return c.posteriorRate().Validate()
}
