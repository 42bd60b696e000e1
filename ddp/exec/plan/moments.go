package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// centred is the sum of squared differences from the mean: see Reduction.
type centred struct{ graph.Reduce }

func (c centred) String() string { return "centred squares over " + c.Reduce.String() }

// reduction says how a graph.Reduce or centred combines, and whether it is centred.
func reduction(op any) (fn graph.ReduceFn, isCentred bool) {
	if c, ok := op.(centred); ok {
		return c.Fn, true
	}
	return op.(graph.Reduce).Fn, false
}

// moments turns the sum of (x − m)², where m is the mean of x over the same
// axes, into a reduction of x alone: mean and variance then take one pass over
// x, and x − m is not made for their sake.
func moments(d *dag) {
	a := analyse(d)
	e := d.edit()
	for i, n := range d.nodes {
		r, ok := n.op.(graph.Reduce)
		if !ok || r.Fn != graph.ReduceSum || a.space[i].dtype != graph.F32 {
			continue
		}
		if x, ok := a.fromMean(r, a.reads[i][0], a.space[i]); ok && a.full(i, x) {
			e.replace(i, n.instead(centred{r}, x))
		}
	}
	e.apply()
}

// fromMean says whether v, summed by r in space s, is (x − mean of x over the same axes)²:
// the mean of what is repeated is another sum's, and a sum in other extents may lie along
// another axis. If x is an array of that space nothing is repeated on the way from it to v.
func (a *analysis) fromMean(r graph.Reduce, v int, s space) (x int, ok bool) {
	d, ok := a.operand(v, graph.Square)
	if !ok {
		return 0, false
	}
	p := a.producer(d)
	if p < 0 || a.nodes[p].op != (graph.Binary{Fn: graph.Sub}) {
		return 0, false
	}
	x = a.reads[p][0]
	mean := a.reads[p][1]
	sum, ok := a.operand(mean, graph.Scale)
	if !ok {
		return 0, false
	}
	q := a.producer(sum)
	if q < 0 || a.nodes[q].out[0] != sum || a.nodes[q].op != r || a.reads[q][0] != x || a.space[q] != s {
		return 0, false
	}
	return x, a.divides(mean, float64(a.Values[x].Dims.Len())/float64(a.Values[sum].Dims.Len()))
}

// divides says whether v, made by Scale, is an n-th of what that takes. Scale's number is
// a float64 whatever the array's type is, so 1/n is off by a rounding of float64s and no
// more; 1/(n−1), of an unbiased estimate, is another number for all n below 10¹².
func (a *analysis) divides(v int, n float64) bool {
	return math.Abs(a.nodes[a.producer(v)].op.(graph.Unary).A()*n-1) < 1e-12
}

// operand is the operand of the unary function that makes v.
func (a *analysis) operand(v int, fn graph.UnaryFn) (x int, ok bool) {
	p := a.producer(v)
	if p < 0 || a.nodes[p].out[0] != v {
		return 0, false
	}
	u, ok := a.nodes[p].op.(graph.Unary)
	if !ok || u.Fn != fn {
		return 0, false
	}
	return a.reads[p][0], true
}
