package algotest

import (
	"slices"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// widen is g with F64 for every F32 inside, so that ranks can be compared beyond
// rounding. Inputs stay as they are, for Feeder fills them; draws are of the same
// names.
func widen(g *graph.Graph) (*graph.Graph, error) {
	b := new(graph.Builder)
	ids := make([]graph.ID, g.NumValues())
	for i, live := range g.Live() {
		n := g.Nodes()[i]
		if !live || b.Err() != nil {
			continue
		}
		var in []graph.ID
		for _, id := range n.In {
			in = append(in, ids[id])
		}
		var out []graph.ID
		switch op := n.Op.(type) {
		case graph.Leaf:
			if op.Kind == graph.Input {
				x := b.Input(op.Name, op.Type)
				out = []graph.ID{b.Cast(x, wide(op.Type).DType)}
				break
			}
			op.Type = wide(op.Type)
			out = b.Apply(op)
		case graph.Const:
			op.Type = wide(op.Type)
			out = b.Apply(op)
		case graph.Iota:
			op.Type = wide(op.Type)
			out = b.Apply(op)
		case graph.Draw:
			op.Type = wide(op.Type)
			out = b.Apply(op, in...)
		case graph.Cast:
			out = []graph.ID{b.Cast(in[0], wide(graph.T(op.To)).DType)}
		default:
			out = b.Apply(op, in...)
		}
		for k, id := range out {
			ids[n.Out[k]] = id
		}
	}
	for _, o := range g.Outputs() {
		b.Output(o.Name, ids[o.ID])
	}
	for _, a := range g.Assigns() {
		b.Assign(ids[a.Var], ids[a.Value])
	}
	return b.Build()
}

func wide(t graph.Type) graph.Type {
	if t.DType == graph.F32 {
		t.DType = graph.F64
	}
	return t
}

// widened are variables of a widened graph.
func widened(vars []nn.Variable) []nn.Variable {
	vars = slices.Clone(vars)
	for i := range vars {
		vars[i].Type = wide(vars[i].Type)
	}
	return vars
}
