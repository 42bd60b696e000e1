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
func linear(d *dag) {
	hoist(d)
	s := &linearSums{analysis: analyse(d), sums: map[sumOf]int{}}
	e := d.edit()
	for i, n := range d.nodes {
		r, ok := n.op.(graph.Reduce)
		if !ok || r.Fn != graph.ReduceSum || !s.needed[i] || !s.scales(i) {
			continue
		}
		v := s.reads[i][0]
		s.begin(i, r)
		if sum, ok := s.expand(v); ok && d.Values[v].Dims.Len() >= minLinear {
			e.insertBefore(i, s.combination...)
			e.replace(i, n.instead(graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(1)}, sum))
			for _, p := range s.visited {
				d.nodes[p].late = true
			}
		}
		s.sums[sumOf{r, v, s.space[i].dims}] = n.out[0]
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

type linearSums struct {
	*analysis
	sums map[sumOf]int // the values of the sums so far

	// of the sum being looked at:
	at, steps   int
	op          graph.Reduce
	count       float64 // of elements that are summed into one
	combination []node  // of sums
	visited     []int   // the nodes of what is summed
}

func (s *linearSums) begin(i int, r graph.Reduce) {
	s.at, s.op = i, r
	s.count = float64(s.space[i].dims.Len()) / float64(max(1, s.result().Dims.Len()))
	s.combination, s.visited, s.steps = nil, nil, 0
}

// scales says whether sums like that of node i may be multiplied by numbers: not whole
// numbers, which have no Scale, and not bfloat16s, of whose sums too few digits are kept
// for others to follow from them.
func (s *linearSums) scales(i int) bool {
	t := s.space[i].dtype
	return t == graph.F32 || t == graph.F64
}

func (s *linearSums) result() *Value { return &s.Values[s.nodes[s.at].out[0]] }

// expand is a value that is the sum of v, if it follows from sums that exist.
func (s *linearSums) expand(v int) (sum int, ok bool) {
	if s.invariant(v) {
		return s.emit(graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(s.count)}, v), true
	}
	if sum, ok := s.sums[sumOf{s.op, v, s.space[s.at].dims}]; ok {
		return sum, true
	}
	p := s.producer(v)
	if s.steps++; s.steps > maxSteps || p < 0 || !s.fusible[p] || s.nodes[p].out[0] != v || s.space[p] != s.space[s.at] {
		return 0, false
	}
	s.visited = append(s.visited, p)
	in := slices.Clone(s.reads[p])
	var expanded []int // the operands whose sums it takes
	switch op := s.nodes[p].op.(type) {
	case graph.Unary:
		if op.Fn == graph.Neg || op.Fn == graph.Scale {
			expanded = []int{0}
		}
	case graph.Binary:
		switch {
		case op.Fn == graph.Add || op.Fn == graph.Sub:
			expanded = []int{0, 1}
		case op.Fn == graph.Mul && s.invariant(in[0]):
			in[0], in[1] = in[1], in[0]
			expanded = []int{0}
		case op.Fn == graph.Mul && s.invariant(in[1]):
			expanded = []int{0}
		}
	}
	if expanded == nil {
		return 0, false
	}
	for _, k := range expanded {
		if in[k], ok = s.expand(in[k]); !ok {
			return 0, false
		}
	}
	return s.emit(s.nodes[p].op, in...), true
}

// invariant says whether v is the same along the axes that are summed over, and
// like a sum otherwise.
func (s *linearSums) invariant(v int) bool {
	val := &s.Values[v]
	return !val.IsConst && val.Dims == s.result().Dims && val.Dims != s.space[s.at].dims
}

func (s *linearSums) emit(op fmt.Stringer, in ...int) int {
	n := s.nodes[s.at]
	v := s.like(n.out[0])
	s.combination = append(s.combination, node{op: op, in: in, out: []int{v}, index: n.index, scope: n.scope})
	return v
}
