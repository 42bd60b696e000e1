package ddptest

import "ebtrain/ddp/graph"

// Rewrite is the live part of g with what emit makes of each op: as many values as
// the op has. emit adds them to b, from the rewritten inputs in.
func Rewrite(g *graph.Graph, emit func(b *graph.Builder, op graph.Op, in []graph.ID) []graph.ID) (*graph.Graph, error) {
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
		for k, id := range emit(b, n.Op, in) {
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

// Widen adds op to b with F64 for F32: an emit of Rewrite.
func Widen(b *graph.Builder, op graph.Op, in []graph.ID) []graph.ID {
	switch o := op.(type) {
	case graph.Leaf:
		o.Type = Wide(o.Type)
		op = o
	case graph.Const:
		o.Type = Wide(o.Type)
		op = o
	case graph.Iota:
		o.Type = Wide(o.Type)
		op = o
	case graph.Draw:
		o.Type = Wide(o.Type)
		op = o
	case graph.Cast:
		return []graph.ID{b.Cast(in[0], Wide(graph.T(o.To)).DType)}
	}
	return b.Apply(op, in...)
}

// Wide is t with F64 for F32.
func Wide(t graph.Type) graph.Type {
	if t.DType == graph.F32 {
		t.DType = graph.F64
	}
	return t
}
