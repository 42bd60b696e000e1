package ddp

import (
	"slices"

	"ebtrain/ddp/graph"
)

// aloneBytes is from which size on a gradient or a weight travels alone: it needs no
// copy into a vector with others then, and each is on its way as soon as it is made.
const aloneBytes = 256 << 10

// parcel is values of one type that travel together: one that is alone, or small ones
// that follow from one collective.
type parcel struct {
	from  int // the node of the collective
	typ   graph.DType
	alone bool
	ids   []graph.ID
}

// parcelOf is a parcel of a value.
func (s *sharder) parcelOf(id graph.ID, from int) parcel {
	t := s.g.Type(id)
	return parcel{from, t.DType, t.Bytes() >= aloneBytes, []graph.ID{id}}
}

// addTo puts a parcel's values into the one in due that they can travel with, or adds it.
func (p parcel) addTo(due []parcel) []parcel {
	k := slices.IndexFunc(due, func(q parcel) bool { return q.from == p.from && q.typ == p.typ && !q.alone && !p.alone })
	if k < 0 {
		return append(due, p)
	}
	due[k].ids = append(due[k].ids, p.ids...)
	return due
}

// gather makes wholes of the parts of a parcel.
func (s *sharder) gather(p parcel) {
	parts, wholes, label := make([]graph.ID, len(p.ids)), make([]graph.Type, len(p.ids)), "weights"
	for k, id := range p.ids {
		parts[k], wholes[k] = s.part[id], s.g.Type(id)
	}
	if op, ok := s.g.Nodes()[p.from].Op.(graph.AllReduce); ok {
		label = op.Label + ", weights"
	}
	s.set(s.all, p.ids, gather(s.to, s.world, label, parts, wholes))
}

// gather makes wholes of parts, which travel as one vector.
func gather(b *graph.Builder, world int, label string, parts []graph.ID, wholes []graph.Type) []graph.ID {
	y := b.AllGather(world, label, b.Concat(0, parts...))
	rows := b.Reshape(y, graph.D(world, b.Shape(y).Len()/world))
	all, at := make([]graph.ID, len(parts)), 0
	for k, part := range parts {
		n, t := b.Shape(part).Len(), wholes[k]
		flat := b.Reshape(b.Slice(rows, 1, at, at+n, 1), graph.D(world*n))
		all[k] = b.Reshape(b.Slice(flat, 0, 0, t.Shape.Len(), 1), t.Shape)
		at += n
	}
	return all
}
