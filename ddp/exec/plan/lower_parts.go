package plan

import "ebtrain/ddp/graph"

// Vectors of which each rank has a part. Parts travel aligned, as all that lies in a
// bucket does: those of other lengths are padded on the way there, and cut after.

// reduceScatter lowers a collective that leaves a rank its part.
func (l *lowering) reduceScatter(op graph.ReduceScatter, n graph.Node) {
	x, dt, part := l.held(l.get(n.In[0], false)), l.g.Type(n.Out[0]).DType, l.g.Type(n.Out[0]).Shape.Len()
	room := aligned(part, dt)
	if room == part {
		l.emit(op, []int{x}, []int{l.fresh(n.Out[0])})
		return
	}
	wide := l.padded(l.alias(x, graph.D(op.World, part), false), room-part)
	mine := l.add(Value{DType: dt, Dims: graph.D(room)})
	l.emit(op, []int{l.alias(wide, graph.D(op.World*room), false)}, []int{mine})
	l.cut(mine, l.fresh(n.Out[0]))
}

// allGather lowers a collective that gives every rank the parts of all.
func (l *lowering) allGather(op graph.AllGather, n graph.Node) {
	x, dt, part := l.held(l.get(n.In[0], false)), l.g.Type(n.In[0]).DType, l.g.Type(n.In[0]).Shape.Len()
	room := aligned(part, dt)
	if room == part {
		l.emit(op, []int{x}, []int{l.fresh(n.Out[0])})
		return
	}
	wide := l.add(Value{DType: dt, Dims: graph.D(op.World * room)})
	l.emit(op, []int{l.padded(x, room-part)}, []int{wide})
	all := l.add(Value{DType: dt, Dims: graph.D(op.World, part)})
	l.cut(l.alias(wide, graph.D(op.World, room), false), all)
	l.set(n.Out[0], false, l.alias(all, graph.D(op.World*part), false))
}

// part lowers a rank's part of a vector, which is read in place where it is aligned.
func (l *lowering) part(n graph.Node) {
	x, size := l.held(l.get(n.In[0], false)), l.g.Type(n.Out[0]).Bytes()
	if size%Align == 0 {
		v := l.alias(x, l.g.Type(n.Out[0]).Shape, false)
		l.Values[v].Off += l.o.Rank * size
		l.set(n.Out[0], false, v)
		return
	}
	k := l.g.Type(n.Out[0]).Shape.Len()
	l.emit(graph.Slice{Start: graph.D(l.o.Rank * k), Limit: graph.D((l.o.Rank + 1) * k), Step: graph.D(1)}, []int{x}, []int{l.fresh(n.Out[0])})
}

// placed lowers a vector that is a rank's part and zeros.
func (l *lowering) placed(n graph.Node) {
	k := l.g.Type(n.In[0]).Shape.Len()
	pad := graph.Pad{Lo: graph.D(l.o.Rank * k), Hi: graph.D((l.o.World - 1 - l.o.Rank) * k), Gap: graph.D(0)}
	l.emit(pad, []int{l.held(l.get(n.In[0], false))}, []int{l.fresh(n.Out[0])})
}

// aligned is the least number of elements, at least n, that fill whole lines.
func aligned(n int, dt graph.DType) int { return roundUp(n*dt.Size()) / dt.Size() }

// padded is v with more elements at the end of its last axis.
func (l *lowering) padded(v, more int) int {
	dims := l.Values[v].Dims
	axis := dims.Rank() - 1
	none := dims
	for i := range dims.Rank() {
		none = none.With(i, 0)
	}
	out := l.add(Value{DType: l.Values[v].DType, Dims: dims.With(axis, dims.At(axis)+more)})
	l.emit(graph.Pad{Lo: none, Hi: none.With(axis, more), Gap: none}, []int{v}, []int{out})
	return out
}

// cut makes out of the first elements of each axis of v.
func (l *lowering) cut(v, out int) {
	o := graph.Slice{Start: l.Values[out].Dims, Limit: l.Values[out].Dims, Step: l.Values[out].Dims}
	for i := range o.Limit.Rank() {
		o.Start, o.Step = o.Start.With(i, 0), o.Step.With(i, 1)
	}
	l.emit(o, []int{v}, []int{out})
}
