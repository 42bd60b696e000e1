package ddp

import (
	"slices"

	"ebtrain/ddp/graph"
)

// Sharded is a variable of which each rank keeps a part: Whole, flat and padded with
// anything to equal parts, is what the ranks' variables of type Part are one after the
// other.
type Sharded struct {
	Name        string
	Whole, Part graph.Type
}

// Sharding is how the optimisers of a step are shared out among ranks.
type Sharding struct {
	World int
	// State names the optimisers' state.
	State map[string]bool
	// Exact reduces to all what is summed for a report, too: every output then has the
	// bits that it has without, but for a sum of new weights or of state that are images.
	Exact bool
	// Late names the weights that may be gathered in the step after the one that makes
	// them: who reads them between steps does as Parts says.
	Late map[string]bool
}

// ShardOptimizer turns g, a step of one of o.World ranks, into one in which each rank
// keeps a part of the optimisers' state, and computes that part of the new weights:
// gradients of which nothing needs all are scattered where they were reduced to all, what
// is computed from them and the state element by element is computed of the rank's part,
// and the new weights are gathered, beside what follows in the step. Those of o.Late that
// nothing else in it reads are gathered beside the next step (see Parts). All ranks get the
// same graph, and every number has the bits that it has in g, if the communicator's
// ReduceScatter has those of its AllReduce, but for one kind: where a gradient's elements
// are summed for an output alone, as for its reported norm, each rank sums its part, and
// the sums are added up. Such an output differs by rounding; o.Exact forgoes that. Where the
// order or the type of arrays in memory depends on what else is computed (exec/plan), more
// does: what is gathered lies row by row, so a sum of new weights or state that without were
// images, in channels-last order, is added up in another order; and gradients that are images
// may be rounded to bfloat16 in one graph and not in the other.
//
// Where something else needs all of a gradient (a clip by its norm), it is reduced to all,
// and the rank's part taken from it. State of which more has to be gathered than weights
// is left as it is, for nothing would be saved: that of an unrolled lower level, through
// which one differentiates. Parts are what is sharded, in the order of the graph; with
// one rank there are none and the graph is g.
func ShardOptimizer(g *graph.Graph, o Sharding) (*graph.Graph, Parts, error) {
	if o.World == 1 {
		return g, Parts{}, nil
	}
	var sums []bool
	if !o.Exact {
		sums = reportedSums(g, g.Live())
	}
	r := findRegion(g, o.State, sums)
	for r.drop() {
		r = findRegion(g, r.state, r.sums)
	}
	if len(r.leaves()) == 0 {
		return g, Parts{}, nil
	}
	s := newSharder(r, o.World)
	s.findLate(o.Late)
	return s.build()
}

// region is what is computed of a rank's part: a set of values that follow from state
// element by element, and from which the state and weights of the next step follow.
type region struct {
	g     *graph.Graph
	state map[string]bool // of it, the variables that are sharded
	sums  []bool          // by value: a sum that each rank makes of parts; nil if none is
	live  []bool          // by node

	in    []bool // by value: a node makes it of parts
	parts []bool // by value: something reads parts of it: nodes of the region, sums and state
	moves []bool // by value: of these, not sums alone
	whole []bool // by value: something in the step reads all of it
	kept  []bool // by value: the new value of a variable that is not sharded
}

// findRegion finds the region of variables, with these sums of parts.
func findRegion(g *graph.Graph, state map[string]bool, sums []bool) *region {
	n := g.NumValues()
	r := &region{g: g, state: state, sums: sums, live: g.Live(), in: make([]bool, n), parts: make([]bool, n), moves: make([]bool, n), whole: make([]bool, n), kept: make([]bool, n)}
	for _, a := range g.Assigns() {
		if r.isState(a.Var) {
			r.parts[a.Value], r.moves[a.Value] = true, true
		} else {
			r.kept[a.Value] = true
		}
	}
	follows := r.follow()
	for _, o := range g.Outputs() {
		r.whole[o.ID] = true
	}
	// Backwards, all readers of a value are known before it is.
	for i := len(g.Nodes()) - 1; i >= 0; i-- {
		node := g.Nodes()[i]
		if !r.live[i] {
			continue
		}
		id := node.Out[0]
		if elementwise(g, node) {
			if follows[id] {
				r.in[id] = r.parts[id] || r.kept[id]
			} else {
				r.in[id] = r.parts[id] && !r.gathers(id)
			}
		}
		r.read(node)
	}
	return r
}

// gathers says whether all of a value has to be there: something reads it, or keeps it.
func (r *region) gathers(id graph.ID) bool { return r.whole[id] || r.kept[id] }

// read marks how a node reads what it reads.
func (r *region) read(n graph.Node) {
	out := n.Out[0]
	of := r.whole
	if r.in[out] || r.isSum(out) {
		of = r.parts
	}
	for _, id := range n.In {
		of[id] = true
		r.moves[id] = r.moves[id] || r.in[out] && (r.moves[out] || r.kept[out])
	}
}

// follow marks the values that follow from state element by element. What is kept as
// a weight is gathered anyway, and what follows from it is computed of all.
func (r *region) follow() []bool {
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
			if follows[id] && !r.kept[id] {
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

// drop takes the variables out of state that are not worth it, and the sums, and says
// whether there were any: those of which something else reads all, and those of a
// component of the region that has to gather more values than gradients enter it.
func (r *region) drop() bool {
	c := newComponents(r)
	left, dropped := map[string]bool{}, r.dropSums()
	for _, id := range r.leaves() {
		if r.gathers(id) || !r.parts[id] || c.gathered[c.find(id)] > max(1, c.entered[c.find(id)]) {
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
		if r.in[id] && r.gathers(graph.ID(id)) {
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

// each calls f with every value that is made of parts, not for sums alone, and each that
// it is made of.
func (r *region) each(f func(id, in graph.ID)) {
	for i, n := range r.g.Nodes() {
		if out := n.Out[0]; r.live[i] && r.in[out] && (r.moves[out] || r.gathers(out)) {
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
// alone, all of them floats.
func elementwise(g *graph.Graph, n graph.Node) bool {
	switch n.Op.(type) {
	case graph.Unary, graph.Binary, graph.Select, graph.Cast, graph.StopGrad:
	default:
		return false
	}
	integer := func(id graph.ID) bool { return !g.Type(id).DType.IsFloat() }
	return !slices.ContainsFunc(n.In, integer) && !integer(n.Out[0])
}
