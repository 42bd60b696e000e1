package plan

import (
	"slices"

	"ebtrain/ddp/graph"
)

// toLast and toFirst are the permutations between (N,C,H,W) and (N,H,W,C).
var (
	toLast  = graph.D(0, 2, 3, 1)
	toFirst = graph.D(0, 3, 1, 2)
)

// permute is the extents of axes perm[0], perm[1], ….
func permute(s, perm graph.Dims) graph.Dims {
	out := s
	for i := range s.Rank() {
		out = out.With(i, s.At(perm.At(i)))
	}
	return out
}

// sameOrder says whether both layouts put the elements of an image of logical
// shape s into the same order.
func sameOrder(s graph.Shape) bool { return s.At(1) == 1 || s.At(2)*s.At(3) == 1 }

// layouts chooses, by graph ID, whether a value lies in channels-last order.
// Values that are linked by ops that work in either layout, or by an assignment, are
// treated alike: channels-last if any of them is an image of a convolution, pool or
// upsampling, or weights where these are wanted so.
func layouts(g *graph.Graph, live []bool, o Options) []bool {
	alike := linked(g, live, o)
	some := make([]bool, g.NumValues()) // by representative: some of those alike is to be so
	for i, n := range g.Nodes() {
		if !live[i] {
			continue
		}
		for _, id := range images(n.Op, n.In, n.Out) {
			some[alike.find(int(id))] = true
		}
		if w := weights(n); o.WeightsLast && w != 0 {
			some[alike.find(int(w))] = true
		}
	}
	last := make([]bool, g.NumValues())
	for id := 1; id < len(last); id++ {
		v := graph.ID(id)
		last[id] = some[alike.find(id)] && free(g, v, o) || o.fixedLast(maker(g, v))
	}
	return last
}

// linked are the values that are to lie alike, of those whose layout can be chosen.
func linked(g *graph.Graph, live []bool, o Options) union {
	u := newUnion(g.NumValues())
	for i, n := range g.Nodes() {
		if !live[i] {
			continue
		}
		for _, l := range links(n) {
			if free(g, l[0], o) && free(g, l[1], o) && !number(g, l[0]) {
				u.join(int(l[0]), int(l[1]))
			}
		}
	}
	for _, a := range g.Assigns() {
		if free(g, a.Var, o) && free(g, a.Value, o) {
			u.join(int(a.Var), int(a.Value))
		}
	}
	return u
}

// maker is the op that makes a value.
func maker(g *graph.Graph, id graph.ID) graph.Op { return g.Nodes()[g.NodeOf(id)].Op }

// number says whether a value is one number, which ties what reads it to nothing: a
// spectral norm's gradient is summed over images and spread over weights.
func number(g *graph.Graph, id graph.ID) bool { return g.Type(id).Shape.Len() == 1 }

// fixedLast says whether a leaf is a variable that lies in channels-last order
// because another program has it so.
func (o Options) fixedLast(op graph.Op) bool {
	leaf, ok := op.(graph.Leaf)
	if !ok || leaf.Kind != graph.Var || o.VarLast == nil || !o.WeightsLast {
		return false
	}
	last, fixed := o.VarLast(leaf.Name)
	return last && fixed
}

// free says whether a value may lie in either order, and which can be chosen where it is made.
func free(g *graph.Graph, id graph.ID, o Options) bool {
	if g.Type(id).Shape.Rank() != 4 {
		return false
	}
	switch op := maker(g, id).(type) {
	case graph.Leaf:
		fixed := false
		if o.VarLast != nil {
			_, fixed = o.VarLast(op.Name)
		}
		return o.WeightsLast && op.Kind == graph.Var && !fixed
	case graph.Const, graph.Reshape, graph.Draw:
		return false
	}
	return true
}

// images are the operands and results of an op that are images, which lie in channels-last
// order: of a node of the graph, or of a step.
func images[V any](op any, in, out []V) []V {
	switch op.(type) {
	case graph.Conv2D:
		return []V{in[0], out[0]}
	case graph.Conv2DGradX:
		return []V{in[1], out[0]}
	case graph.Conv2DGradW:
		return in
	case graph.SumPool2D, graph.SumUnpool2D, graph.MaxPool2D, graph.PlaneGather, graph.PlaneScatter,
		graph.Upsample2D, graph.Upsample2DT:
		return slices.Concat(in, out)
	}
	return nil
}

// weights is the operand or result of a convolution that is its weights, 0 if the
// node is none.
func weights(n graph.Node) graph.ID {
	switch n.Op.(type) {
	case graph.Conv2D:
		return n.In[1]
	case graph.Conv2DGradX:
		return n.In[0]
	case graph.Conv2DGradW:
		return n.Out[0]
	}
	return 0
}

// links are pairs of values that should have the same layout.
func links(n graph.Node) [][2]graph.ID {
	switch n.Op.(type) {
	case graph.Unary, graph.Binary, graph.Select, graph.Cast, graph.Reduce, graph.Broadcast, graph.Slice, graph.Pad,
		graph.Concat, graph.StopGrad, graph.AllReduce:
		var l [][2]graph.ID
		for i, in := range n.In {
			l = append(l, [2]graph.ID{in, n.Out[min(i, len(n.Out)-1)]})
		}
		return l
	case graph.Gather, graph.ScatterAdd:
		return [][2]graph.ID{{n.In[0], n.Out[0]}}
	}
	return nil
}

// union is a partition of 0 … n−1; the representative of a part is its least
// member.
type union []int32

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = int32(i)
	}
	return u
}

func (u union) find(i int) int {
	for int(u[i]) != i {
		u[i] = u[u[i]]
		i = int(u[i])
	}
	return i
}

func (u union) join(i, j int) {
	i, j = u.find(i), u.find(j)
	u[max(i, j)] = int32(min(i, j))
}
