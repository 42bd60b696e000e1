// Package workload holds two training steps that differentiate gradients, as
// loads for stepbench: GRBM, a bi-level step with an unrolled lower level
// (derivatives of order three), and ConvSM, denoising score matching of a
// convolutional energy (order two).
//
// They are the same computations as the PyTorch programs in ../peers, number
// for number: testdata holds what those programs compute, also of the methods that
// stepbench times, and tests compare (../golden). They are loads and not the
// algorithms' home.
//
// Noise is named like all randomness here, by purpose Testing, so a step on n
// ranks computes what one rank would. A value of this package is a plain
// configuration and may be used from any goroutine.
package workload

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// noise gives independent draws; the same number gives the same draw.
type noise func(number uint16, dist graph.Dist, t graph.Type) graph.ID

// drawn is noise as a training step draws it.
func drawn(c *nn.Context) noise {
	key := c.Input(algo.InputKey, graph.KeyType)
	return func(number uint16, dist graph.Dist, t graph.Type) graph.ID {
		return c.Draw(key, dist, philox.Testing, number, t)
	}
}

// report is the output OutputReport: the means over ranks of some scalars.
func report(c *nn.Context, scalars ...graph.ID) {
	rows := make([]graph.ID, len(scalars))
	for i, s := range scalars {
		rows[i] = c.Reshape(s, graph.D(1))
	}
	all := c.Concat(0, rows...)
	if c.World > 1 {
		all = c.AllReduce(collective.Mean, "losses", all)[0]
	}
	c.Output(algo.OutputReport, all)
}
