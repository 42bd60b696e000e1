package sm

import (
	"errors"
	"fmt"

	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Validate says everything that is wrong with settings that fit their data.
func (c *Config) Validate() error { return errors.Join(c.validateSettings(), c.Net.validate()) }

// validateSettings says everything that is wrong whatever the sizes of samples are, which
// Fit takes from the data.
func (c *Config) validateSettings() error {
	return errors.Join(
		setting.OneOf("model", c.Net.Kind, kinds()),
		setting.OneOf("objective", c.Objective, objectives()),
		setting.OneOf("trace", c.Trace, traces()),
		setting.OneOf("schedule", c.Schedule, optim.Schedules()),
		setting.Factor.Check("sample-share", c.SampleShare),
		c.Noise.Validate(),
		c.Scheduled.Validate(),
		c.contradictions(),
	)
}

// contradictions are settings that are good by themselves only.
func (c *Config) contradictions() error {
	if c.Net.Kind == EBM && c.Objective == SSM && c.Trace == Exact {
		return errors.New("--trace exact needs the score's derivative in closed form, which --model ebm does not have: say --trace sliced, or --objective mdsm")
	}
	return nil
}

func (n Net) validate() error {
	if n.C < 1 || n.H < 1 || n.W < 1 {
		return fmt.Errorf("want samples of at least one value, got %dx%dx%d", n.C, n.H, n.W)
	}
	switch {
	case n.Kind == EBM && n.H != n.W:
		return fmt.Errorf("--model ebm takes square pictures, got %dx%d", n.H, n.W)
	case n.Kind == EBM:
		return n.trunk().Validate()
	}
	return n.grbm().Validate()
}
