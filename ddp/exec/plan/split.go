package plan

import "ebtrain/ddp/graph"

// split turns the sum over some axes of x + y, where x is made in an earlier
// group, into the sum of two small sums: each ends the group that makes its
// operand, and neither x nor x + y is kept. Gradients of parameters that are
// broadcast in several places have this form.
func (l *lowering) split() {
	for l.splitOnce() {
	}
}

func (l *lowering) splitOnce() bool {
	f := &fusion{lowering: l}
	f.produce()
	f.need()
	f.levels()
	assigned := map[int]bool{}
	for _, a := range f.plan.assigns {
		assigned[f.prod[a.src]] = true
	}
	early := make([][]node, len(f.nodes)) // by node: sums to put behind it
	var nodes []node
	changed := false
	for i, n := range f.nodes {
		if p, ok := f.sumOfTwo(i); ok && !assigned[p] {
			changed = true
			var parts [2]int
			for k, v := range f.reads(p) {
				out := f.plan.Values[n.out[0]]
				parts[k] = l.add(Value{DType: out.DType, Dims: out.Dims, Last: out.Last})
				sum := node{n.op, []int{v}, []int{parts[k]}, f.nodes[p].index, n.scope, false}
				if q := f.prod[v]; q >= 0 {
					sum.index = f.nodes[q].index
				}
				early[p] = append(early[p], sum)
			}
			f.nodes[i] = node{f.nodes[p].op, parts[:], n.out, n.index, n.scope, false}
		}
	}
	for i, n := range f.nodes {
		nodes = append(append(nodes, n), early[i]...)
	}
	l.nodes = nodes
	return changed
}

// sumOfTwo says whether node i sums, as its only reader, the result of a node
// p that adds two arrays, one of which comes from an earlier group.
func (f *fusion) sumOfTwo(i int) (p int, ok bool) {
	r, isReduce := f.nodes[i].op.(graph.Reduce)
	if !isReduce || r.Fn != graph.ReduceSum || !f.needed[i] {
		return 0, false
	}
	v := f.reads(i)[0]
	if p = f.prod[v]; p < 0 || f.nodes[p].op != (graph.Binary{Fn: graph.Add}) || len(f.users[p]) != 1 || f.nodes[p].out[0] != v {
		return 0, false
	}
	for _, x := range f.reads(p) {
		val := &f.plan.Values[x]
		if val.IsConst || val.Dims != f.space[p].dims { // broadcasts are summed where they are
			return 0, false
		}
		if q := f.prod[x]; q >= 0 && f.inside(q, p, x) && f.level[q] < f.level[p] {
			ok = true
		}
	}
	return p, ok
}
