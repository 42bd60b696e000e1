package plan

import (
	"ebtrain/ddp/graph"
)

// node lowers one node of the graph.
func (l *lowering) node(n graph.Node) {
	switch op := n.Op.(type) {
	case graph.Leaf:
		l.leaf(op, n)
	case graph.Const:
		v := l.add(Value{DType: op.Type.DType, Dims: op.Type.Shape, IsConst: true, Const: op.Value()})
		l.set(n.Out[0], false, v)
	case graph.Reshape:
		l.set(n.Out[0], false, l.alias(l.get(n.In[0], false), op.Shape, false))
	case graph.Unary, graph.Binary, graph.Select, graph.Cast:
		l.pointwise(n)
	case graph.Broadcast:
		l.broadcast(n)
	case graph.Reduce:
		l.reduce(op, n)
	case graph.AllReduce:
		l.allReduce(op, n)
	case graph.ReduceScatter:
		l.reduceScatter(op, n)
	case graph.AllGather:
		l.allGather(op, n)
	case graph.Part:
		l.part(n)
	case graph.Placed:
		l.placed(n)
	case graph.Transpose:
		l.transpose(op, n)
	case graph.Iota:
		l.iota(n)
	default:
		l.other(n)
	}
}

func (l *lowering) leaf(op graph.Leaf, n graph.Node) {
	list, space := &l.Inputs, Input
	if op.Kind == graph.Var {
		list, space = &l.Vars, Var
	}
	last := l.last[n.Out[0]]
	v := l.add(Value{DType: op.Type.DType, Dims: l.dims(n.Out[0], last), Last: last, Space: space, Index: len(*list)})
	*list = append(*list, External{op.Name, op.Type, v})
	l.set(n.Out[0], last, v)
}

// pointwise lowers an op that maps elements to elements. One whose operands
// are all constants is a constant.
func (l *lowering) pointwise(n graph.Node) {
	last := l.last[n.Out[0]]
	in, allConst := make([]int, len(n.In)), true
	var args [3]float64
	for i, id := range n.In {
		in[i] = l.get(id, last)
		v := &l.Values[in[i]]
		allConst = allConst && v.IsConst
		args[i] = v.Const
	}
	if t := l.g.Type(n.Out[0]); allConst && foldable(n.Op, t.DType) {
		v := l.add(Value{DType: t.DType, Dims: l.dims(n.Out[0], last), Last: last, IsConst: true, Const: fold(n.Op, t.DType, args)})
		l.set(n.Out[0], last, v)
		return
	}
	if _, ok := n.Op.(graph.Cast); ok {
		in[0] = l.held(in[0])
	}
	l.emit(n.Op, in, []int{l.fresh(n.Out[0])})
}

func (l *lowering) broadcast(n graph.Node) {
	last := l.last[n.Out[0]]
	src := l.get(n.In[0], last)
	dims := l.dims(n.Out[0], last)
	if s := l.Values[src]; s.IsConst || s.Dims == dims {
		l.set(n.Out[0], last, l.alias(src, dims, last))
		return
	}
	v := l.fresh(n.Out[0])
	l.Values[v].bcast = src
	l.emit(graph.Broadcast{Shape: dims}, []int{src}, []int{v})
}

// iota lowers an index along an axis: the numbers of that axis, repeated along the
// others, where readers repeat them for themselves.
func (l *lowering) iota(n graph.Node) {
	last := l.last[n.Out[0]]
	op, dims := l.axes(n.Op, last, n.Out[0]).(graph.Iota), l.dims(n.Out[0], last)
	line := dims
	for i := range dims.Rank() {
		if i != op.Axis {
			line = line.With(i, 1)
		}
	}
	if line == dims {
		l.other(n)
		return
	}
	op.Type.Shape = line
	src, v := l.add(Value{DType: op.Type.DType, Dims: line, Last: last}), l.fresh(n.Out[0])
	l.Values[v].bcast = src
	l.emit(op, nil, []int{src})
	l.emit(graph.Broadcast{Shape: dims}, []int{src}, []int{v})
}

// allReduce lowers a collective; of one rank it is a copy.
func (l *lowering) allReduce(op graph.AllReduce, n graph.Node) {
	in, out := make([]int, len(n.In)), make([]int, len(n.In))
	for i, id := range n.In {
		in[i] = l.get(id, l.last[n.Out[i]])
		out[i] = l.fresh(n.Out[i])
	}
	if l.o.World > 1 {
		l.emit(op, in, out)
		return
	}
	for i := range in {
		l.emit(Copy{}, []int{l.held(in[i])}, []int{out[i]})
	}
}

// transpose composes the permutation with the layouts of both sides.
func (l *lowering) transpose(op graph.Transpose, n graph.Node) {
	inLast, outLast := l.last[n.In[0]], l.last[n.Out[0]]
	in := l.held(l.get(n.In[0], inLast))
	perm := op.Perm
	for i := range perm.Rank() {
		logical := i
		if outLast {
			logical = toLast.At(i)
		}
		perm = perm.With(i, physical(op.Perm.At(logical), inLast))
	}
	l.emit(graph.Transpose{Perm: perm}, []int{in}, []int{l.fresh(n.Out[0])})
}

// physical is the physical number of a logical axis.
func physical(axis int, last bool) int {
	if !last {
		return axis
	}
	return toFirst.At(axis)
}

// phys is d, one entry per logical axis, in physical order.
func phys(d graph.Dims, last bool) graph.Dims {
	if !last {
		return d
	}
	return permute(d, toLast)
}

// reduce lowers a reduction; one over axes of extent 1 is an alias.
func (l *lowering) reduce(op graph.Reduce, n graph.Node) {
	last := l.last[n.Out[0]]
	p := graph.Reduce{Fn: op.Fn}
	for a := range l.g.Type(n.In[0]).Shape.Rank() {
		if op.Over(a) {
			p.Axes |= 1 << physical(a, last)
		}
	}
	src := l.get(n.In[0], last)
	if dims := l.Values[src].Dims; dims == l.dims(n.Out[0], last) {
		l.set(n.Out[0], last, l.alias(src, dims, last))
		return
	}
	l.emit(p, []int{src}, []int{l.fresh(n.Out[0])})
}

// other lowers the ops whose operands must be in memory.
func (l *lowering) other(n graph.Node) {
	last := l.last[n.Out[0]]
	op := l.axes(n.Op, last, n.Out[0])
	in, out := make([]int, len(n.In)), make([]int, len(n.Out))
	for i, id := range n.In {
		in[i] = l.held(l.get(id, l.operandLast(op, i, last)))
	}
	if _, ok := op.(graph.Conv2DGradW); ok && !l.o.WeightsLast {
		out[0] = l.rowMajor(n.Out[0])
	} else {
		for i, id := range n.Out {
			out[i] = l.fresh(id)
		}
	}
	l.widened(op, in, out)
}

// operandLast says whether operand i of op is wanted in channels-last order,
// where the result is so if last.
func (l *lowering) operandLast(op graph.Op, i int, last bool) bool {
	switch op.(type) {
	case graph.Conv2D:
		return i == 0 || l.o.WeightsLast
	case graph.Conv2DGradX:
		return i == 1 || l.o.WeightsLast
	case graph.Conv2DGradW:
		return true
	case graph.Gather, graph.ScatterAdd:
		return i == 0 && last
	}
	return last
}

// axes is op with physical axes.
func (l *lowering) axes(op graph.Op, last bool, out graph.ID) graph.Op {
	switch o := op.(type) {
	case graph.Slice:
		return graph.Slice{Start: phys(o.Start, last), Limit: phys(o.Limit, last), Step: phys(o.Step, last)}
	case graph.Pad:
		return graph.Pad{Lo: phys(o.Lo, last), Hi: phys(o.Hi, last), Gap: phys(o.Gap, last)}
	case graph.Concat:
		return graph.Concat{Axis: physical(o.Axis, last)}
	case graph.Iota:
		return graph.Iota{Type: graph.Type{DType: o.Type.DType, Shape: l.dims(out, last)}, Axis: physical(o.Axis, last)}
	}
	return op
}

// rowMajor is a new value in row-major order, whatever layout its readers want.
func (l *lowering) rowMajor(id graph.ID) int {
	t := l.g.Type(id)
	v := l.add(Value{DType: t.DType, Dims: t.Shape})
	l.set(id, false, v)
	return v
}

// widened emits an op, in f32 with conversions before and after if it computes
// in bf16 and the device cannot.
func (l *lowering) widened(op graph.Op, in, out []int) {
	switch op.(type) {
	case graph.Slice, graph.Pad, graph.Concat, graph.Gather, graph.PlaneGather, graph.Iota, graph.Draw:
		l.emit(op, in, out)
		return
	}
	wide := func(v int) int {
		val := l.Values[v]
		if !l.o.WidenBF16 || val.DType != graph.BF16 {
			return v
		}
		return l.add(Value{DType: graph.F32, Dims: val.Dims, Last: val.Last})
	}
	wideIn, wideOut := make([]int, len(in)), make([]int, len(out))
	for i, v := range in {
		if wideIn[i] = wide(v); wideIn[i] != v {
			l.emit(graph.Cast{To: graph.F32}, []int{v}, []int{wideIn[i]})
		}
	}
	for i, v := range out {
		wideOut[i] = wide(v)
	}
	l.emit(op, wideIn, wideOut)
	for i, v := range out {
		if wideOut[i] != v {
			l.emit(graph.Cast{To: graph.BF16}, []int{wideOut[i]}, []int{v})
		}
	}
}
