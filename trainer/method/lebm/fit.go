package lebm

import (
	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
)

// Fit takes the number of channels from the data.
func (c *Config) Fit(s data.Schema) error {
	if c.Text != nil {
		return c.Text.fit(s)
	}
	if side := c.Net.Shape.side(); s.H != side || s.W != side {
		return &algo.Misfit{What: "--net " + string(c.Net.Shape), H: side, W: side}
	}
	c.Net.Channels = s.C
	return nil
}

// TakesSentences says whether the data are sentences.
func (c *Config) TakesSentences() bool { return c.Text != nil }

// Takes says which pictures the networks take.
func (m model) Takes() algo.Inputs {
	n := m.cfg.Net
	return algo.Inputs{Shape: graph.D(n.Channels, n.Shape.side(), n.Shape.side()), Range: loader.Symmetric}
}

// shape is that of n samples.
func (c Config) shape(n int) graph.Shape {
	return graph.D(n, c.Net.Channels, c.Net.Shape.side(), c.Net.Shape.side())
}
