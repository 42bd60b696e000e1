package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// linear turns the sum of a linear combination of arrays into the combination
// of their sums, where those are made anyway: the gradient of a batch norm's
// mean, say, from the gradient of its shift. The combination is then not summed
// in a pass of its own, and joins the group of its readers.
func (l *lowering) linear() {
	l.hoist()
	f := &fusion{lowering: l}
	f.produce()
	f.need()
	s := &linearSums{fusion: f, sums: map[sumOf]int{}}
	var nodes []node
	now := make([]int, len(f.nodes)) // by node: its new number
	for i, n := range f.nodes {
		now[i] = len(nodes)
		r, ok := n.op.(graph.Reduce)
		if !ok || r.Fn != graph.ReduceSum || !f.needed[i] {
			nodes = append(nodes, n)
			continue
		}
		v := f.reads(i)[0]
		s.begin(i, r)
		if sum, ok := s.expand(v); ok && f.plan.Values[v].Dims.Len() >= minLinear {
			nodes = append(append(nodes, s.made...), node{graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(1)}, []int{sum}, n.out, n.index, n.scope, false})
			for _, p := range s.seen {
				nodes[now[p]].late = true
			}
		} else {
			nodes = append(nodes, n)
		}
		s.sums[sumOf{r, v}] = n.out[0]
	}
	l.nodes = nodes
}

// hoist puts every sum right behind the node that makes its operand, so that
// others can use it.
func (l *lowering) hoist() {
	f := &fusion{lowering: l}
	f.produce()
	behind := make([][]node, len(f.nodes))
	moved := make([]bool, len(f.nodes))
	for i, n := range f.nodes {
		if _, ok := n.op.(graph.Reduce); !ok {
			continue
		}
		if p := f.prod[f.reads(i)[0]]; p >= 0 {
			behind[p], moved[i] = append(behind[p], n), true
		}
	}
	var nodes []node
	var put func(i int)
	put = func(i int) {
		nodes = append(nodes, f.nodes[i])
		for _, n := range behind[i] {
			put(f.prod[n.out[0]])
		}
	}
	for i := range f.nodes {
		if !moved[i] {
			put(i)
		}
	}
	l.nodes = nodes
}

// minLinear is the size of an array that is worth it.
const minLinear = 1 << 12

// sumOf is a sum that exists.
type sumOf struct {
	op graph.Reduce
	v  int
}

type linearSums struct {
	*fusion
	sums map[sumOf]int // the values of the sums so far

	// of the sum being looked at:
	at, depth int
	op        graph.Reduce
	out       Value   // like its result
	count     float64 // of elements that are summed into one
	made      []node
	seen      []int // the nodes of the combination
}

func (s *linearSums) begin(i int, r graph.Reduce) {
	o := s.plan.Values[s.nodes[i].out[0]]
	s.at, s.op, s.out = i, r, Value{DType: o.DType, Dims: o.Dims, Last: o.Last}
	s.count = float64(s.space[i].dims.Len()) / float64(max(1, o.Dims.Len()))
	s.made, s.seen, s.depth = nil, nil, 0
}

// expand is a value that is the sum of v, if it follows from sums that exist.
func (s *linearSums) expand(v int) (sum int, ok bool) {
	if s.invariant(v) {
		return s.emit(graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(s.count)}, v), true
	}
	if sum, ok := s.sums[sumOf{s.op, v}]; ok {
		return sum, true
	}
	p := s.prod[v]
	if s.depth++; s.depth > 16 || p < 0 || !s.fusible[p] || s.nodes[p].out[0] != v || s.space[p] != s.space[s.at] {
		return 0, false
	}
	s.seen = append(s.seen, p)
	in := s.reads(p)
	switch op := s.nodes[p].op.(type) {
	case graph.Unary:
		if op.Fn != graph.Neg && op.Fn != graph.Scale {
			return 0, false
		}
		x, ok := s.expand(in[0])
		return s.emitIf(ok, op, x)
	case graph.Binary:
		return s.binary(op, in[0], in[1])
	}
	return 0, false
}

func (s *linearSums) binary(op graph.Binary, x, y int) (sum int, ok bool) {
	switch op.Fn {
	case graph.Add, graph.Sub:
		a, ok := s.expand(x)
		if !ok {
			return 0, false
		}
		b, ok := s.expand(y)
		return s.emitIf(ok, op, a, b)
	case graph.Mul:
		if s.invariant(x) {
			x, y = y, x
		}
		if !s.invariant(y) {
			return 0, false
		}
		a, ok := s.expand(x)
		return s.emitIf(ok, op, a, y)
	}
	return 0, false
}

// invariant says whether v is the same along the axes that are summed over, and
// like a sum otherwise.
func (s *linearSums) invariant(v int) bool {
	val := &s.plan.Values[v]
	return !val.IsConst && val.Dims == s.out.Dims && val.Dims != s.space[s.at].dims
}

func (s *linearSums) emitIf(ok bool, op graph.Op, in ...int) (int, bool) {
	if !ok {
		return 0, false
	}
	return s.emit(op, in...), true
}

func (s *linearSums) emit(op graph.Op, in ...int) int {
	v := s.add(s.out)
	s.prod = append(s.prod, -1)
	n := s.nodes[s.at]
	s.made = append(s.made, node{op, in, []int{v}, n.index, n.scope, false})
	return v
}
