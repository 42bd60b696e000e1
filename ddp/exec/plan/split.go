package plan

import "ebtrain/ddp/graph"

// split turns the sum over some axes of x + y, where x is made in an earlier
// group, into the sum of two small sums: each ends the group that makes its
// operand, and neither x nor x + y is kept. Gradients of parameters that are
// broadcast in several places have this form.
//
// It changes the order of a sum and goes by levels, which depend on the rest
// of the graph: a deterministic program does without it.
func split(d *dag) {
	for splitOnce(d) {
	}
}

// splitOnce says whether it has changed anything: levels are others then.
func splitOnce(d *dag) (changed bool) {
	s := &splitting{analyse(d), d.edit()}
	for i, n := range d.nodes {
		if p, ok := s.sumOfTwo(i); ok {
			s.edit.replace(i, s.apart(n, p))
			changed = true
		}
	}
	s.edit.apply()
	return changed
}

type splitting struct {
	*analysis
	edit *edit
}

// sumOfTwo says whether node i sums, as its only reader, the result of a node
// p that adds two arrays, one of which comes from an earlier group.
func (s *splitting) sumOfTwo(i int) (p int, ok bool) {
	r, isReduce := s.nodes[i].op.(graph.Reduce)
	if !isReduce || r.Fn != graph.ReduceSum || !s.needed[i] {
		return 0, false
	}
	p = s.producer(s.reads[i][0])
	// what is repeated before it is summed is another sum; of bfloat16s, sums have too few
	// digits to be added up
	return p, p >= 0 && s.space[p] == s.space[i] && s.space[i].dtype != graph.BF16 && s.adds(p, s.reads[i][0])
}

// adds says whether node p makes v, for one reader, by adding two arrays, one
// of which comes from an earlier group.
func (s *splitting) adds(p, v int) (ok bool) {
	if p < 0 || s.nodes[p].op != (graph.Binary{Fn: graph.Add}) || len(s.users[p]) != 1 || s.nodes[p].out[0] != v || s.assigned[p] {
		return false
	}
	for _, x := range s.reads[p] {
		if !s.full(p, x) { // broadcasts are summed where they are
			return false
		}
		if q := s.producer(x); q >= 0 && s.inside(q, p, x) && s.level[q] < s.level[p] {
			ok = true
		}
	}
	return ok
}

// apart is the sum n of what node p adds as the sum of two sums, each behind p.
// Those are taken apart in turn.
func (s *splitting) apart(n node, p int) node {
	var parts [2]int
	for k, x := range s.reads[p] {
		parts[k] = s.like(n.out[0])
		sum := node{op: n.op, in: []int{x}, out: parts[k : k+1 : k+1], index: s.nodes[p].index, scope: n.scope}
		q := s.producer(x)
		if q >= 0 {
			sum.index = s.nodes[q].index
		}
		if s.adds(q, x) {
			sum = s.apart(sum, q)
		}
		s.edit.insertAfter(p, sum)
	}
	return n.instead(s.nodes[p].op, parts[:]...)
}
