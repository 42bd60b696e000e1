package plan

import (
	"cmp"
	"slices"

	"ebtrain/ddp/graph"
)

// gradients joins the gradients of weights that are added up.
func (l *laying) gradients() {
	s := l.newAdditions()
	var keys []gradKey
	parts := map[gradKey][]int{}
	for i := range l.nodes {
		op, ok := l.nodes[i].op.(graph.Conv2DGradW)
		if !ok {
			continue
		}
		if top := s.top(i); top >= 0 {
			k := gradKey{top, l.Values[l.nodes[i].in[0]].Dims.With(0, 1), l.Values[l.nodes[i].in[1]].Dims.With(0, 1), op}
			if len(parts[k]) == 0 {
				keys = append(keys, k)
			}
			parts[k] = append(parts[k], i)
		}
	}
	for _, k := range keys {
		if len(parts[k]) > 1 {
			l.gradient(parts[k], s)
		}
	}
}

// gradKey is what gradients that are joined have in common.
type gradKey struct {
	top   int // the sum of which they are parts
	x, dy graph.Shape
	op    graph.Conv2DGradW
}

// gradient makes one of the gradients of nodes, if images of one of their operands lie
// behind each other, and those of the other do or can be placed so: the first's result is
// the sum of all, and zero is added in place of the others'.
func (l *laying) gradient(nodes []int, s *additions) {
	slices.SortStableFunc(nodes, func(a, b int) int {
		return cmp.Compare(l.order[l.nodes[a].in[0]], l.order[l.nodes[b].in[0]])
	})
	var operands [2][]int
	points := 0
	for _, i := range nodes {
		for k := range operands {
			operands[k] = append(operands[k], l.nodes[i].in[k])
		}
		points += max(l.Values[l.nodes[i].in[0]].Dims.Len(), l.Values[l.nodes[i].in[1]].Dims.Len())
	}
	together := false
	for k, values := range operands {
		_, lie := l.neighbours(values)
		together = together || lie
		may := func(v int) bool {
			return l.movable(v) || l.little(v, operands[1-k][slices.Index(values, v)])
		}
		if points > l.o.Join || !l.fit(values, may) {
			return
		}
	}
	if !together { // of a chain, say: the first would have to wait for the last
		return
	}
	first := l.first(nodes)
	one := l.nodes[first]
	one.in = []int{l.together(operands[0], first), l.together(operands[1], first)}
	l.made = append(l.made, one)
	for _, i := range nodes {
		l.gone[i] = true
		if i != first {
			s.drop(i)
		}
	}
}

// additions are those whose results have one reader.
type additions struct {
	*laying
	readers [][]int // by node: who reads what it makes, once for each operand
	fixed   []bool  // by node: what it makes is assigned
}

func (l *laying) newAdditions() *additions {
	s := &additions{l, make([][]int, len(l.nodes)), make([]bool, len(l.nodes))}
	for i := range l.nodes {
		for _, v := range l.nodes[i].in {
			if p := l.maker[v]; p >= 0 {
				s.readers[p] = append(s.readers[p], i)
			}
		}
	}
	for _, a := range l.assigns {
		if p := l.maker[a.src]; p >= 0 {
			s.fixed[p] = true
		}
	}
	return s
}

// adder is the addition that alone reads what node i makes, as it is; −1 if there is none.
func (s *additions) adder(i int) int {
	out := s.nodes[i].out[0]
	if len(s.readers[i]) != 1 || s.fixed[i] {
		return -1
	}
	r := s.readers[i][0]
	if n := &s.nodes[r]; n.op != (graph.Binary{Fn: graph.Add}) || !slices.Contains(n.in, out) || s.Values[n.out[0]].Dims != s.Values[out].Dims {
		return -1
	}
	return r
}

// top is the last of the additions to which node i alone leads, −1 if there is none.
func (s *additions) top(i int) int {
	top := -1
	for r := s.adder(i); r >= 0; r = s.adder(r) {
		top = r
	}
	return top
}

// drop adds zero where what node i made was added.
func (s *additions) drop(i int) {
	r, out := s.readers[i][0], s.nodes[i].out[0]
	zero := s.add(Value{DType: s.Values[out].DType, Dims: s.Values[out].Dims, Last: s.Values[out].Last, IsConst: true})
	in := slices.Clone(s.nodes[r].in)
	in[slices.Index(in, out)] = zero
	s.nodes[r].in = in
}
