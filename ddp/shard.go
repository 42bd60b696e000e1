package ddp

import (
	"ebtrain/ddp/graph"
)

// Sharded is a variable of which each rank keeps a part: Whole, flat and padded with
// anything to equal parts, is what the ranks' variables of type Part are one after the
// other.
type Sharded struct {
	Name        string
	Whole, Part graph.Type
}

// ShardOptimizer turns g, a step of one of world ranks, into one in which each rank
// keeps a part of the optimisers' state, the variables named in state, and computes that
// part of the new weights: gradients that nothing else reads are scattered where they
// were reduced to all, what is computed from them and the state element by element is
// computed of the rank's part, and the new weights are gathered. All ranks get the same
// graph, and every number has the bits that it has in g, if the communicator's
// ReduceScatter has those of its AllReduce.
//
// Where something needs all of a gradient (a norm, a clip), it is reduced to all, and the
// rank's part taken from it. State of which more has to be gathered than weights is left
// as it is, for nothing would be saved: that of an unrolled lower level, through which
// one differentiates. The list is what is sharded, in the order of the graph; with one
// rank it is empty and the graph is g.
func ShardOptimizer(g *graph.Graph, world int, state map[string]bool) (*graph.Graph, []Sharded, error) {
	if world == 1 {
		return g, nil, nil
	}
	r := findRegion(g, state)
	for r.drop() {
		r = findRegion(g, r.state)
	}
	if len(r.leaves()) == 0 {
		return g, nil, nil
	}
	return newSharder(r, world).build()
}

// region is what is computed of a rank's part: a set of values that follow from state
// element by element, and from which the state and weights of the next step follow.
type region struct {
	g     *graph.Graph
	state map[string]bool // of it, the variables that are sharded
	live  []bool          // by node

	in    []bool // by value: a node makes it of parts
	parts []bool // by value: all that reads it reads parts: nodes of the region, and state
	whole []bool // by value: something reads all of it
}

// findRegion finds the region of variables.
func findRegion(g *graph.Graph, state map[string]bool) *region {
	n := g.NumValues()
	r := &region{g: g, state: state, live: g.Live(), in: make([]bool, n), parts: make([]bool, n), whole: make([]bool, n)}
	kept, next := make([]bool, n), make([]bool, n) // assigned to other variables, to state
	for _, a := range g.Assigns() {
		if r.isState(a.Var) {
			next[a.Value] = true
		} else {
			kept[a.Value] = true
		}
	}
	follows := r.follow(kept)
	for _, o := range g.Outputs() {
		r.whole[o.ID] = true
	}
	for id, is := range kept {
		r.whole[id] = r.whole[id] || is
	}
	copy(r.parts, next)
	// Backwards, all readers of a value are known before it is.
	for i := len(g.Nodes()) - 1; i >= 0; i-- {
		node := g.Nodes()[i]
		if !r.live[i] {
			continue
		}
		if elementwise(g, node) {
			id := node.Out[0]
			if follows[id] {
				r.in[id] = r.parts[id] || kept[id]
			} else {
				r.in[id] = r.parts[id] && !r.whole[id]
			}
		}
		of := r.whole
		if r.in[node.Out[0]] {
			of = r.parts
		}
		for _, id := range node.In {
			of[id] = true
		}
	}
	return r
}

// follow marks the values that follow from state element by element. What is kept as
// a weight is gathered anyway, and what follows from it is computed of all.
func (r *region) follow(kept []bool) []bool {
	follows := make([]bool, r.g.NumValues())
	for i, n := range r.g.Nodes() {
		if !r.live[i] {
			continue
		}
		if r.isState(n.Out[0]) {
			follows[n.Out[0]] = true
		}
		if !elementwise(r.g, n) {
			continue
		}
		for _, id := range n.In {
			if follows[id] && !kept[id] {
				follows[n.Out[0]] = true
			}
		}
	}
	return follows
}

// isState says whether a value is a variable that is sharded.
func (r *region) isState(id graph.ID) bool {
	leaf, ok := r.op(id).(graph.Leaf)
	return ok && leaf.Kind == graph.Var && r.state[leaf.Name] && leaf.Type.DType.IsFloat()
}

func (r *region) op(id graph.ID) graph.Op { return r.g.Nodes()[r.g.NodeOf(id)].Op }

// leaves are the sharded variables that the graph has.
func (r *region) leaves() (ids []graph.ID) {
	for i, n := range r.g.Nodes() {
		if r.live[i] && r.isState(n.Out[0]) {
			ids = append(ids, n.Out[0])
		}
	}
	return ids
}

// drop takes the variables out of state that are not worth it, and says whether there
// were any: those of which something else reads all, and those of a component of the
// region that has to gather more values than gradients enter it.
func (r *region) drop() bool {
	c := newComponents(r)
	left, dropped := map[string]bool{}, false
	for _, id := range r.leaves() {
		if r.whole[id] || !r.parts[id] || c.gathered[c.find(id)] > max(1, c.entered[c.find(id)]) {
			dropped = true
			continue
		}
		left[r.op(id).(graph.Leaf).Name] = true
	}
	r.state = left
	return dropped
}

// components are the parts of a region that do not touch, one for each parameter of an
// optimiser.
type components struct {
	parent            []graph.ID // by value
	gathered, entered []int      // by representative
}

func newComponents(r *region) *components {
	n := r.g.NumValues()
	c := &components{parent: make([]graph.ID, n), gathered: make([]int, n), entered: make([]int, n)}
	for i := range c.parent {
		c.parent[i] = graph.ID(i)
	}
	type entry struct{ from, to graph.ID }
	entries := map[entry]bool{}
	r.each(func(id, in graph.ID) {
		if r.in[in] || r.isState(in) {
			c.parent[c.find(id)] = c.find(in)
		}
	})
	for _, a := range r.g.Assigns() {
		if r.isState(a.Var) {
			c.parent[c.find(a.Value)] = c.find(a.Var)
		}
	}
	r.each(func(id, in graph.ID) {
		if e := (entry{in, c.find(id)}); !r.in[in] && !r.isState(in) && !r.local(in) && !entries[e] {
			entries[e] = true
			c.entered[e.to]++
		}
	})
	for id := range r.in {
		if r.in[id] && r.whole[id] {
			c.gathered[c.find(graph.ID(id))]++
		}
	}
	return c
}

func (c *components) find(id graph.ID) graph.ID {
	for c.parent[id] != id {
		c.parent[id] = c.parent[c.parent[id]]
		id = c.parent[id]
	}
	return id
}

// each calls f with every value that is made of parts and each that it is made of.
func (r *region) each(f func(id, in graph.ID)) {
	for i, n := range r.g.Nodes() {
		if r.live[i] && r.in[n.Out[0]] {
			for _, in := range n.In {
				f(n.Out[0], in)
			}
		}
	}
}

// local says whether a value is known without any computation: a variable, or the same
// number everywhere.
func (r *region) local(id graph.ID) bool {
	switch r.op(id).(type) {
	case graph.Leaf, graph.Const, graph.Broadcast:
		return true
	}
	return false
}

// elementwise says whether element i of what n makes depends on element i of its inputs
// alone.
func elementwise(g *graph.Graph, n graph.Node) bool {
	switch n.Op.(type) {
	case graph.Unary, graph.Binary, graph.Select, graph.Cast, graph.StopGrad:
	default:
		return false
	}
	out := g.Type(n.Out[0])
	for _, in := range n.In {
		if t := g.Type(in); t.Shape != out.Shape || !t.DType.IsFloat() {
			return false
		}
	}
	return out.DType.IsFloat()
}
