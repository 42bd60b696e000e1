package vages

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	board := data.Schema{C: 1, H: 1, W: 2}
	published := map[string]data.Schema{
		"vages-ksd-board": board, "vages-dsm-board": board, "vages-frey": {C: 1, H: 28, W: 20},
		"vages-mnist": {C: 1, H: 32, W: 32}, "vages-cifar10": {C: 3, H: 32, W: 32}, "vages-celeba64": {C: 3, H: 64, W: 64},
	}
	cases := map[string]Config{
		"deep":            tinyNetworks(func(c *Config) { c.LowerSteps = 1 }),
		"deep, scores":    tinyNetworks(func(c *Config) { c.LowerSteps, c.Surrogate, c.ControlVariate = 1, Scores, true }),
		"deep, no steps":  tinyNetworks(func(c *Config) { c.LowerSteps = 0 }),
		"product":         tinyUnits(func(c *Config) { c.Surrogate, c.Particles = Product, 3 }),
		"no posterior":    tinyUnits(func(c *Config) { c.LowerSteps = 0 }),
		"no covariance":   tinyUnits(func(c *Config) { c.WithoutCovariance, c.Particles = true, 1 }),
		"exact, sliced":   tinyUnits(func(c *Config) { c.Objective, c.Estimator = SSM, Exact }),
		"importance, ksd": tinyUnits(func(c *Config) { c.Objective, c.Estimator = KSD, Importance }),
	}
	for _, o := range objectives() {
		cases[string(o)] = tinyUnits(func(c *Config) { c.Objective = o })
	}
	var all []algotest.Case
	for name, c := range cases {
		c.SampleShare = 0.004
		all = append(all, algotest.Case{Name: name, Config: &c})
	}
	algotest.Run(t, Method(), published, all...)
}
