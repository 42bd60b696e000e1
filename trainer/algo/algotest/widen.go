package algotest

import (
	"slices"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// widen is g with F64 for every F32 inside, so that ranks can be compared beyond
// rounding. Inputs stay as they are, for Feeder fills them; draws are of the same
// names.
func widen(g *graph.Graph) (*graph.Graph, error) {
	return ddptest.Rewrite(g, func(b *graph.Builder, op graph.Op, in []graph.ID) []graph.ID {
		if leaf, ok := op.(graph.Leaf); ok && leaf.Kind == graph.Input {
			x := b.Input(leaf.Name, leaf.Type)
			return []graph.ID{b.Cast(x, ddptest.Wide(leaf.Type).DType)}
		}
		return ddptest.Widen(b, op, in)
	})
}

// widened are variables of a widened graph.
func widened(vars []nn.Variable) []nn.Variable {
	vars = slices.Clone(vars)
	for i := range vars {
		vars[i].Type = ddptest.Wide(vars[i].Type)
	}
	return vars
}
