package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// centred is the sum of squared differences from the mean: see Reduction.
type centred struct{ graph.Reduce }

func (c centred) String() string { return "centred squares over " + c.Reduce.String() }

// reduction is a graph.Reduce or centred taken apart.
func reduction(op any) (fn graph.ReduceFn, mid bool) {
	if c, ok := op.(centred); ok {
		return c.Fn, true
	}
	return op.(graph.Reduce).Fn, false
}

// moments turns the sum of (x − m)², where m is the mean of x over the same
// axes, into a reduction of x alone: mean and variance then take one pass over
// x, and x − m is not made for their sake.
func (l *lowering) moments() {
	f := &fusion{lowering: l}
	f.produce()
	for i := range f.nodes {
		n := &f.nodes[i]
		r, ok := n.op.(graph.Reduce)
		if !ok || r.Fn != graph.ReduceSum || f.space[i].dtype != graph.F32 {
			continue
		}
		if x, ok := f.fromMean(r, f.reads(i)[0]); ok {
			n.op, n.in = centred{r}, []int{x}
		}
	}
}

// fromMean says whether v is (x − mean of x over the axes of r)².
func (f *fusion) fromMean(r graph.Reduce, v int) (x int, ok bool) {
	d, ok := f.unary(v, graph.Square)
	if !ok {
		return 0, false
	}
	p := f.prod[d]
	if p < 0 || f.nodes[p].op != (graph.Binary{Fn: graph.Sub}) {
		return 0, false
	}
	in := f.reads(p)
	x = in[0]
	sum, ok := f.unary(in[1], graph.Scale)
	if !ok {
		return 0, false
	}
	q := f.prod[sum]
	if q < 0 || f.nodes[q].op != r || f.reads(q)[0] != x {
		return 0, false
	}
	a := f.nodes[f.prod[in[1]]].op.(graph.Unary).A()
	n := float64(f.plan.Values[x].Dims.Len()) / float64(f.plan.Values[sum].Dims.Len())
	return x, math.Abs(a*n-1) < 1e-6
}

// unary is the operand of the unary function that makes v.
func (f *fusion) unary(v int, fn graph.UnaryFn) (x int, ok bool) {
	p := f.prod[v]
	if p < 0 || f.nodes[p].out[0] != v {
		return 0, false
	}
	u, ok := f.nodes[p].op.(graph.Unary)
	if !ok || u.Fn != fn {
		return 0, false
	}
	return f.reads(p)[0], true
}
