package algo

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// WriteReport is the output OutputReport of a step: the scalars of means, averaged
// over ranks in one small all-reduce, and then those of same, which all ranks
// have alike. Its type is the context's, F32 in training.
func WriteReport(c *nn.Context, means, same []graph.ID) {
	row := func(xs []graph.ID) graph.ID {
		rows := make([]graph.ID, len(xs))
		for i, x := range xs {
			rows[i] = c.Reshape(c.Cast(x, c.DType), graph.D(1))
		}
		return c.Concat(0, rows...)
	}
	all := row(means)
	if c.World > 1 {
		all = c.AllReduce(collective.Mean, "losses", all)[0]
	}
	if len(same) > 0 {
		all = c.Concat(0, all, row(same))
	}
	c.Output(OutputReport, all)
}
