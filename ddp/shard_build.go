package ddp

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
)

// sharder builds the graph of a region's parts.
type sharder struct {
	*region
	world int
	to    *graph.Builder

	all  []graph.ID // by value of the old graph: its whole in the new one, 0 if not made
	part []graph.ID // by value of the old graph: the rank's part of it, 0 if not made
	from []int      // by value: the last collective that what is made of parts follows from
	due  []parcel   // what is to be gathered together, in the order of its making

	summed []graph.ID // values of the old graph of which part is this rank's sum
	late   []late
	isLate []bool // by value: the new value of variables that are gathered late
}

func newSharder(r *region, world int) *sharder {
	n := r.g.NumValues()
	s := &sharder{region: r, world: world, to: &graph.Builder{}, all: make([]graph.ID, n), part: make([]graph.ID, n), from: make([]int, n), isLate: make([]bool, n)}
	for i, n := range r.g.Nodes() {
		_, reduces := n.Op.(graph.AllReduce)
		for _, id := range n.Out {
			if reduces {
				s.from[id] = i
			}
			for _, in := range n.In {
				if s.in[id] {
					s.from[id] = max(s.from[id], s.from[in])
				}
			}
		}
	}
	return s
}

func (s *sharder) build() (*graph.Graph, Parts, error) {
	if err := s.checkNames(); err != nil {
		return nil, Parts{}, err
	}
	s.startLate()
	reports := s.report()
	s.nodes(reports, false)
	s.addSums()
	s.nodes(reports, true)
	for _, o := range s.g.Outputs() {
		s.to.Output(o.Name, s.wholeOf(o.ID))
	}
	for _, a := range s.g.Assigns() {
		switch {
		case s.isState(a.Var):
			s.to.Assign(s.part[a.Var], s.partOf(a.Value))
		case !s.isLate[a.Value]:
			s.to.Assign(s.wholeOf(a.Var), s.wholeOf(a.Value))
		}
	}
	s.assignLate()
	var p Parts
	for _, id := range s.leaves() {
		p.State = append(p.State, s.sharded(id))
	}
	for _, w := range s.late {
		p.Late = append(p.Late, s.sharded(w.leaf))
	}
	g, err := s.to.Build()
	return g, p, err
}

// sharded is a variable of which a rank has a part.
func (s *sharder) sharded(id graph.ID) Sharded {
	t := s.g.Type(id)
	return Sharded{s.op(id).(graph.Leaf).Name, t, s.partType(t)}
}

// nodes puts nodes of the old graph into the new one: those that follow from sums of parts,
// or the others.
func (s *sharder) nodes(reports []bool, follow bool) {
	for i, n := range s.g.Nodes() {
		if s.live[i] && reports[i] == follow {
			s.to.Scope(n.Scope, func() { s.node(n) })
		}
	}
}

// node puts a node of the old graph into the new one.
func (s *sharder) node(n graph.Node) {
	out := n.Out[0]
	switch op := n.Op.(type) {
	case graph.Leaf:
		if s.isState(out) {
			s.part[out] = s.to.Var(op.Name, s.partType(op.Type))
			return
		}
		if s.part[out] != 0 { // it is gathered late
			return
		}
	case graph.AllReduce:
		s.reduce(op, n)
		return
	}
	switch {
	case s.in[out]:
		s.pieces(n)
		return
	case s.isSum(out):
		s.sum(n)
		return
	}
	in := make([]graph.ID, len(n.In))
	for k, id := range n.In {
		in[k] = s.wholeOf(id)
	}
	s.set(s.all, n.Out, s.to.Apply(n.Op, in...))
}

// pieces computes the rank's part of what n makes.
func (s *sharder) pieces(n graph.Node) {
	out, in := n.Out[0], make([]graph.ID, len(n.In))
	for k, id := range n.In {
		in[k] = s.partOf(id)
	}
	s.set(s.part, n.Out, s.to.Apply(n.Op, in...))
	if !s.gathers(out) || s.isLate[out] {
		return
	}
	if p := s.parcelOf(out, s.from[out]); p.alone {
		s.gather(p)
	} else {
		s.due = p.addTo(s.due)
	}
}

// reduce scatters what is read in parts alone, and reduces the rest to all.
func (s *sharder) reduce(op graph.AllReduce, n graph.Node) {
	var in, out, few, fewOut []graph.ID
	for k, id := range n.Out {
		x := s.wholeOf(n.In[k])
		switch {
		case s.gathers(id) || !s.parts[id]:
			in, out = append(in, x), append(out, id)
		case s.g.Type(id).Bytes() >= aloneBytes:
			s.scatter(op, []graph.ID{x}, []graph.ID{id})
		default:
			few, fewOut = append(few, x), append(fewOut, id)
		}
	}
	if len(few) > 0 {
		s.scatter(op, few, fewOut)
	}
	if len(in) > 0 {
		s.set(s.all, out, s.to.AllReduce(op.Op, op.Label, in...))
	}
}

// scatter reduces xs to parts, as one vector.
func (s *sharder) scatter(op graph.AllReduce, xs, out []graph.ID) {
	b := s.to
	rows := make([]graph.ID, len(xs))
	for k, x := range xs {
		rows[k] = b.Reshape(s.flat(x), graph.D(s.world, s.length(b.Type(x))))
	}
	y := b.Concat(1, rows...)
	mine := b.ReduceScatter(op.Op, s.world, op.Label, b.Reshape(y, graph.D(b.Shape(y).Len())))
	at := 0
	for k, id := range out {
		n := s.length(b.Type(xs[k]))
		s.part[id] = b.Slice(mine, 0, at, at+n, 1)
		at += n
	}
}

// wholeOf is all of a value, gathered if need be.
func (s *sharder) wholeOf(id graph.ID) graph.ID {
	if s.all[id] != 0 || s.to.Err() != nil {
		return s.all[id]
	}
	for k, p := range s.due {
		if slices.Contains(p.ids, id) {
			s.due = slices.Delete(s.due, k, k+1)
			s.gather(p)
			return s.all[id]
		}
	}
	s.to.Fail(fmt.Errorf("%s: all of it is read, and only parts of it are made", s.op(id)))
	return 0
}

// partOf is this rank's part of a value.
func (s *sharder) partOf(id graph.ID) graph.ID {
	if s.part[id] != 0 || s.to.Err() != nil {
		return s.part[id]
	}
	b, t := s.to, s.partType(s.g.Type(id))
	n := s.g.Nodes()[s.g.NodeOf(id)]
	switch op := n.Op.(type) {
	case graph.Const:
		s.part[id] = b.Apply(graph.Const{Type: t, Bits: op.Bits})[0]
	case graph.Broadcast:
		if s.g.Type(n.In[0]).Shape.Len() == 1 {
			s.part[id] = b.BroadcastTo(b.Reshape(s.wholeOf(n.In[0]), graph.D(1)), t.Shape)
		}
	}
	if s.part[id] == 0 {
		s.part[id] = b.Part(s.world, s.flat(s.wholeOf(id)))
	}
	return s.part[id]
}

// flat is a value as a vector, with zeros at its end to equal parts.
func (s *sharder) flat(x graph.ID) graph.ID {
	t := s.to.Type(x)
	n := t.Shape.Len()
	x = s.to.Reshape(x, graph.D(n))
	if more := s.world*s.length(t) - n; more > 0 {
		x = s.to.Pad(x, 0, 0, more)
	}
	return x
}

// length is how many elements a rank's part of a value of type t has.
func (s *sharder) length(t graph.Type) int { return (t.Shape.Len() + s.world - 1) / s.world }

func (s *sharder) partType(t graph.Type) graph.Type {
	return graph.Type{DType: t.DType, Shape: graph.D(s.length(t))}
}

func (s *sharder) set(to, old, ids []graph.ID) {
	if s.to.Err() != nil {
		return
	}
	for k, id := range old {
		to[id] = ids[k]
	}
}
