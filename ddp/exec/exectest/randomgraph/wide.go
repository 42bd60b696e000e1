package randomgraph

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// noise is a leaf that stands for rounding: 1 + amplitude·u, u in (−1, 1).
type noise struct {
	name      string
	amplitude float64
}

// wide is a graph in float64 that stands for one in narrower types: with each
// rounding replaced by a product with noise.
type wide struct {
	graph  *graph.Graph
	noises []noise
}

// widener makes one.
type widener struct {
	from   *graph.Graph
	b      *graph.Builder
	ids    []graph.ID
	bf16   bool // products may round their operands to bfloat16
	wild   wildness
	noises []noise
}

// widen makes a graph wide. Graphs that are float64 already get noise of
// float64.
func widen(g *graph.Graph, bf16 bool, wild wildness) (*wide, error) {
	w := &widener{from: g, b: &graph.Builder{}, ids: make([]graph.ID, g.NumValues()), bf16: bf16, wild: wild}
	for i, live := range g.Live() {
		if live {
			w.node(g.Nodes()[i])
		}
	}
	for _, o := range g.Outputs() {
		w.b.Output(o.Name, w.ids[o.ID])
	}
	for _, a := range g.Assigns() {
		w.b.Assign(w.ids[a.Var], w.ids[a.Value])
	}
	built, err := w.b.Build()
	return &wide{built, w.noises}, err
}

// widened is t with float64 in place of other floating-point types.
func widened(t graph.Type) graph.Type {
	if t.DType.IsFloat() {
		t.DType = graph.F64
	}
	return t
}

func (w *widener) node(n graph.Node) {
	in := make([]graph.ID, len(n.In))
	heavy, sums := heavyOp(n.Op), sumOf(n.Op)
	for i, id := range n.In {
		in[i] = w.ids[id]
		if t := w.from.Type(id); sums && t.DType.IsFloat() {
			a := t.DType.Epsilon()
			switch {
			case heavy && w.bf16 && t.DType == graph.F32:
				a = 0x1p-8
			case t.DType == graph.F64: // in which the reference, too, adds up: it loses some digits of long sums
				a *= math.Sqrt(float64(max(1, t.Shape.Len())))
			}
			in[i] = w.disturb(in[i], a)
			if w.wild == huge {
				in[i] = w.mayOverflow(in[i], mostTerm(t, heavy))
			}
		}
	}
	out := w.b.Apply(widerOp(n.Op), in...)
	for i, id := range out {
		t := w.from.Type(n.Out[i])
		if t.DType.IsFloat() && rounds(n.Op, w.from, n) {
			id = w.disturb(id, t.DType.Epsilon())
			if w.wild == huge {
				id = w.mayOverflow(id, mostOf(t.DType, 1))
			}
		}
		if w.wild == nonfinite || w.wild == huge {
			id = w.maySpread(n.Op, in, id)
		}
		w.ids[n.Out[i]] = id
	}
}

// disturb multiplies a value by noise.
func (w *widener) disturb(x graph.ID, amplitude float64) graph.ID {
	name := fmt.Sprintf("noise%d", len(w.noises))
	w.noises = append(w.noises, noise{name, amplitude})
	return w.b.Mul(x, w.b.Input(name, graph.Type{DType: graph.F64, Shape: w.b.Shape(x)}))
}

// widerOp is op of float64.
func widerOp(op graph.Op) graph.Op {
	switch op := op.(type) {
	case graph.Leaf:
		op.Type = widened(op.Type)
		return op
	case graph.Const:
		op.Type = widened(op.Type)
		return op
	case graph.Iota:
		op.Type = widened(op.Type)
		return op
	case graph.Draw:
		op.Type = widened(op.Type)
		return op
	case graph.Cast:
		op.To = widened(graph.Type{DType: op.To}).DType
		return op
	}
	return op
}

// heavyOp says whether op is what engines do.
func heavyOp(op graph.Op) bool {
	switch op.(type) {
	case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW, graph.MatMul:
		return true
	}
	return false
}

// sumOf says whether op adds up terms, in an order of the backend's own.
func sumOf(op graph.Op) bool {
	switch op := op.(type) {
	case graph.Reduce:
		return op.Fn == graph.ReduceSum
	case graph.SumPool2D, graph.SumUnpool2D, graph.Upsample2D, graph.Upsample2DT, graph.ScatterAdd, graph.PlaneScatter, graph.AllReduce, graph.ReduceScatter:
		return true
	}
	return heavyOp(op)
}

// rounds says whether the results of op are rounded: not those that are moved,
// compared, chosen or changed in sign.
func rounds(op graph.Op, g *graph.Graph, n graph.Node) bool {
	switch op := op.(type) {
	case graph.Leaf, graph.Iota, graph.Reshape, graph.Transpose, graph.Slice, graph.Pad, graph.Concat, graph.Broadcast, graph.Gather, graph.PlaneGather,
		graph.Select, graph.StopGrad, graph.MaxPool2D, graph.AllGather, graph.Part, graph.Placed:
		return false
	case graph.Const:
		return g.Type(n.Out[0]).DType != graph.F64
	case graph.Cast:
		return g.Type(n.In[0]).DType.Size() > op.To.Size() || !g.Type(n.In[0]).DType.IsFloat() && op.To != graph.F64
	case graph.Reduce:
		return op.Fn == graph.ReduceSum
	case graph.Unary:
		switch op.Fn {
		case graph.Neg, graph.Abs, graph.Sign, graph.Step, graph.Relu:
			return false
		}
	case graph.Binary:
		switch op.Fn {
		case graph.Max, graph.Min, graph.Greater, graph.Equal:
			return false
		}
	}
	return true
}
