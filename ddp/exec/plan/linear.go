package plan

import (
	"fmt"
	"math"
	"slices"

	"ebtrain/ddp/graph"
)

// linear turns the sum of a linear combination of arrays into the combination
// of their sums, where those are made anyway: the gradient of a batch norm's
// mean, say, from the gradient of its shift. The combination is then not summed
// in a pass of its own, and joins the group of its readers.
//
// Arrays are added in it only where the sum of one is nought but for rounding, that of
// what is left of an array without its mean. Other sums may be large, and what is left of
// them small: they have been rounded, and it would have few digits or none.
//
// A multiple of a sum is too large for its type where the sum is, so a sum of parts of an
// array, c·x with |c| < 1, is made as it is where that is known: where c is a number. An
// array c, the scale of a batch norm, is not known. Where the sum of x overflows, which
// the program makes anyway, a sum of c·x that follows from it is NaN or infinite, even
// where c is 0 or so small that the sum of c·x itself had been finite.
// Where c is infinite, Σ(c·x) is NaN if x has both signs, and what follows from Σx may be
// infinite: either shows a training that has diverged. It never becomes finite.
//
// It goes by what else is summed, and changes a rounding: a deterministic program does
// without it.
func linear(d *dag) {
	hoist(d)
	s := &linearSums{analysis: analyse(d), sums: map[sumOf]known{}}
	e := d.edit()
	for i, n := range d.nodes {
		r, ok := n.op.(graph.Reduce)
		if !ok || r.Fn != graph.ReduceSum || !s.needed[i] || !s.scales(i) {
			continue
		}
		v := s.reads[i][0]
		s.begin(i, r)
		sum, ok := s.expand(v)
		if ok && d.Values[v].Dims.Len() >= minLinear {
			e.insertBefore(i, s.combination...)
			e.replace(i, n.instead(graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(1)}, sum.value))
			s.makeBeside(e)
			for _, p := range s.visited {
				d.nodes[p].late = true
			}
		}
		s.sums[sumOf{r, v, s.space[i].dims}] = known{n.out[0], ok && sum.nought}
	}
	e.apply()
}

// hoist puts every sum right behind the node that makes its operand, so that
// others can use it.
func hoist(d *dag) {
	a := analyse(d)
	e := d.edit()
	for i, n := range d.nodes {
		if _, ok := n.op.(graph.Reduce); !ok {
			continue
		}
		if p := a.producer(a.reads[i][0]); p >= 0 {
			e.move(i, p)
		}
	}
	e.apply()
}

// minLinear is the size of an array that is worth it.
const minLinear = 1 << 12

// maxSteps bounds the search for sums that a sum follows from.
const maxSteps = 16

// sumOf is a sum that exists, of v repeated to some dims.
type sumOf struct {
	op   graph.Reduce
	v    int
	over graph.Dims
}

// known is a sum: its value, and whether it is 0 but for rounding.
type known struct {
	value  int
	nought bool
}

type linearSums struct {
	*analysis
	sums map[sumOf]known // so far

	// of the sum being looked at:
	at, steps   int
	op          graph.Reduce
	count       float64 // of elements that are summed into one
	combination []node  // of sums
	beside      []sumBeside
	visited     []int // the nodes of what is summed
}

func (s *linearSums) begin(i int, r graph.Reduce) {
	s.at, s.op = i, r
	s.count = float64(s.space[i].dims.Len()) / float64(max(1, s.result().Dims.Len()))
	s.combination, s.visited, s.beside, s.steps = nil, nil, nil, 0
}

// scales says whether sums like that of node i may be multiplied by numbers: not whole
// numbers, which have no Scale, and not bfloat16s, of whose sums too few digits are kept
// for others to follow from them.
func (s *linearSums) scales(i int) bool {
	t := s.space[i].dtype
	return t == graph.F32 || t == graph.F64
}

func (s *linearSums) result() *Value { return &s.Values[s.nodes[s.at].out[0]] }

// expand is the sum of v, if it follows from sums that exist.
func (s *linearSums) expand(v int) (sum known, ok bool) {
	if s.invariant(v) {
		return known{value: s.emit(graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(s.count)}, v)}, true
	}
	if sum, ok := s.sums[sumOf{s.op, v, s.space[s.at].dims}]; ok {
		return sum, true
	}
	p := s.producer(v)
	if s.steps++; s.steps > maxSteps || p < 0 || !s.fusible[p] || s.nodes[p].out[0] != v || s.space[p] != s.space[s.at] {
		return sum, false
	}
	s.visited = append(s.visited, p)
	in := s.reads[p]
	switch op := s.nodes[p].op.(type) {
	case graph.Unary:
		if op.Fn == graph.Neg || op.Fn == graph.Scale && math.Abs(op.A()) >= 1 { // see linear
			return s.multiple(op, in[0])
		}
	case graph.Binary:
		switch {
		case op.Fn == graph.Add || op.Fn == graph.Sub:
			return s.added(p, op)
		case op.Fn == graph.Mul && s.invariant(in[0]):
			return s.multiple(op, in[1], in[0])
		case op.Fn == graph.Mul && s.invariant(in[1]):
			return s.multiple(op, in[0], in[1])
		}
	}
	if s.isBeside(v, p) {
		s.visited = s.visited[:len(s.visited)-1] // it is made there, too
		return s.addBeside(v, p), true
	}
	return sum, false
}

// sumBeside is a sum that is not there yet: of v, behind node p that makes it.
type sumBeside struct{ v, p, sum int }

// isBeside says whether the sum of v, which node p makes, costs no pass: one before that of
// the sum being looked at makes v and sums the same way what it makes of v.
func (s *linearSums) isBeside(v, p int) bool {
	if s.level[p] >= s.level[s.at] {
		return false
	}
	return slices.ContainsFunc(s.users[p], func(u int) bool {
		return s.level[u] == s.level[p] && s.inside(p, u, v) && slices.ContainsFunc(s.users[u], func(k int) bool {
			return s.nodes[k].op == s.op && s.level[k] == s.level[u] && s.inside(u, k, s.nodes[u].out[0])
		})
	})
}

func (s *linearSums) addBeside(v, p int) known {
	for _, b := range s.beside {
		if b.v == v {
			return known{value: b.sum}
		}
	}
	b := sumBeside{v, p, s.like(s.nodes[s.at].out[0])}
	s.beside = append(s.beside, b)
	return known{value: b.sum}
}

// makeBeside makes the sums that were not there.
func (s *linearSums) makeBeside(e *edit) {
	for _, b := range s.beside {
		n := s.nodes[b.p]
		e.insertAfter(b.p, node{op: s.op, in: []int{b.v}, out: []int{b.sum}, index: n.index, scope: n.scope})
		s.sums[sumOf{s.op, b.v, s.space[s.at].dims}] = known{value: b.sum}
	}
}

// multiple is the sum of what op, linear in v, makes of it and what is the same along
// the axes that are summed over.
func (s *linearSums) multiple(op fmt.Stringer, v int, same ...int) (sum known, ok bool) {
	x, ok := s.expand(v)
	if !ok {
		return sum, false
	}
	return known{s.emit(op, append([]int{x.value}, same...)...), x.nought}, true
}

// added is the sum of the sums or differences that node p makes.
func (s *linearSums) added(p int, op graph.Binary) (sum known, ok bool) {
	var of [2]known
	for k, v := range s.reads[p] {
		if of[k], ok = s.expand(v); !ok {
			return sum, false
		}
	}
	centred := op.Fn == graph.Sub && s.isMean(s.reads[p][1], s.reads[p][0])
	if !centred && !of[0].nought && !of[1].nought {
		return sum, false
	}
	return known{s.emit(op, of[0].value, of[1].value), centred || of[0].nought && of[1].nought}, true
}

// isMean says whether m is the mean of x over what is summed over.
func (s *linearSums) isMean(m, x int) bool {
	sum, ok := s.operand(m, graph.Scale)
	k, found := s.sums[sumOf{s.op, x, s.space[s.at].dims}]
	return ok && found && k.value == sum && s.divides(m, s.count)
}

// invariant says whether v is the same along the axes that are summed over, and
// like a sum otherwise. A number is none: it is read in the extents of its readers.
func (s *linearSums) invariant(v int) bool {
	return s.Values[v].Dims == s.result().Dims
}

func (s *linearSums) emit(op fmt.Stringer, in ...int) int {
	n := s.nodes[s.at]
	v := s.like(n.out[0])
	s.combination = append(s.combination, node{op: op, in: in, out: []int{v}, index: n.index, scope: n.scope})
	return v
}
