package bism

import (
	"testing"

	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	configs := []Config{
		tinyUnits(func(c *Config) { c.LowerSteps, c.Unroll = 0, 2 }),
		tinyNetworks(func(c *Config) { c.LowerSteps, c.Unroll = 1, 1 }),
		tinyNetworks(func(c *Config) { c.LowerSteps, c.Unroll, c.Inner = 2, 0, SGD }),
		tinyNetworks(func(c *Config) { c.LowerSteps, c.Unroll = 0, 0 }),
	}
	for _, rule := range rules() {
		configs = append(configs, tinyUnits(func(c *Config) { c.LowerSteps, c.Unroll, c.Inner = 2, 2, rule }))
	}
	for _, o := range []Objective{SSM, MDSM} {
		configs = append(configs, tinyUnits(func(c *Config) { c.Objective, c.LowerSteps, c.Unroll = o, 2, 1 }))
	}
	var all []algotest.Case
	for _, c := range configs {
		c.SampleShare = 0.004
		all = append(all, algotest.Case{Name: label(c), Config: &c})
	}
	algotest.Run(t, Method(), published, all...)
}
