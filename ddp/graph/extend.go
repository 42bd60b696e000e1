package graph

import "slices"

// Extend returns a Builder that goes on where that of g ended: every value has the ID that
// it has in g, outputs and assignments are there, and what is added computes beside them.
// g itself stays as it is.
func (g *Graph) Extend() *Builder {
	if len(g.nodes) == 0 {
		return &Builder{}
	}
	b := &Builder{
		nodes:   slices.Clone(g.nodes),
		types:   slices.Clone(g.types),
		nodeOf:  slices.Clone(g.nodeOf),
		made:    make(map[key]int32, len(g.nodes)),
		leaves:  map[string]Leaf{},
		outputs: slices.Clone(g.outputs),
		assigns: slices.Clone(g.assigns),
	}
	for i, n := range b.nodes {
		b.made[keyOf(n.Op, n.In)] = int32(i)
		if l, ok := n.Op.(Leaf); ok {
			b.leaves[l.Name] = l
			b.dummies = b.dummies || l.Kind == Dummy
		}
	}
	return b
}
