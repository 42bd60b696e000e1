package plan

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
)

// lowering is the state of the translation of a graph into nodes over
// physical values.
type lowering struct {
	*dag
	g      *graph.Graph
	last   []bool     // by graph ID
	val    [2][]int   // by layout and graph ID: the value, -1 if there is none yet
	same   []graph.ID // by graph ID: the value with the same contents that is lowered
	known  map[call][]graph.ID
	filled map[int]int // constant value → value that holds it in memory
	index  int         // of the graph's node being lowered
	scope  string
}

const noParent = -1

// lower is the live part of g as nodes over physical values: layouts are
// chosen, constants folded, common subexpressions eliminated.
func lower(g *graph.Graph, o Options) *dag {
	live := g.Live()
	values, nodes := g.NumValues(), len(live) // about as many as there will be: lists that grow are copied again and again
	l := &lowering{dag: &dag{Plan: &Plan{Name: o.Name, o: o, Values: make([]Value, 0, values+values/4)}, nodes: make([]node, 0, nodes+nodes/4)},
		g: g, last: layouts(g, live, o), filled: map[int]int{},
		same: make([]graph.ID, values), known: make(map[call][]graph.ID, nodes)}
	for i := range l.same {
		l.same[i] = graph.ID(i)
	}
	for i := range l.val {
		l.val[i] = slices.Repeat([]int{-1}, values)
	}
	for i, n := range g.Nodes() {
		if live[i] {
			l.index, l.scope = i, n.Scope
			if n, known := l.cse(n); !known {
				l.LiveNodes++
				l.node(n)
			}
		}
	}
	l.results()
	return l.dag
}

func (l *lowering) emit(op fmt.Stringer, in, out []int) {
	l.nodes = append(l.nodes, node{op, in, out, l.index, l.scope, false})
}

// alias is a value that shows the memory of v with other extents.
func (l *lowering) alias(v int, dims graph.Shape, last bool) int {
	src := l.Values[v]
	if src.IsConst {
		return l.add(Value{DType: src.DType, Dims: dims, Last: last, IsConst: true, Const: src.Const})
	}
	id := l.add(Value{DType: src.DType, Dims: dims, Last: last})
	l.Values[id].Root, l.Values[id].Off, l.Values[id].parent = src.Root, src.Off, v
	return id
}

func (l *lowering) set(id graph.ID, last bool, v int) { l.val[b2i(last)][id] = v }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// dims is the physical extents of a graph value in a layout.
func (l *lowering) dims(id graph.ID, last bool) graph.Shape {
	s := l.g.Type(id).Shape
	if last {
		return permute(s, toLast)
	}
	return s
}

// fresh is a new value for a graph value, in the layout chosen for it.
func (l *lowering) fresh(id graph.ID) int {
	last := l.last[id]
	v := l.add(Value{DType: l.g.Type(id).DType, Dims: l.dims(id, last), Last: last})
	l.set(id, last, v)
	return v
}

// get is a graph value in the wanted layout, converted if need be.
func (l *lowering) get(id graph.ID, last bool) int {
	id = l.same[id]
	if v := l.val[b2i(last)][id]; v >= 0 {
		return v
	}
	from := l.val[b2i(!last)][id]
	dims := l.dims(id, last)
	var v int
	switch {
	case l.Values[from].IsConst || sameOrder(l.g.Type(id).Shape):
		v = l.alias(from, dims, last)
	default:
		v = l.add(Value{DType: l.g.Type(id).DType, Dims: dims, Last: last})
		perm := toLast
		if !last {
			perm = toFirst
		}
		l.emit(graph.Transpose{Perm: perm}, []int{from}, []int{v})
	}
	l.set(id, last, v)
	return v
}

// held is v in memory: a constant is filled in.
func (l *lowering) held(v int) int {
	val := l.Values[v]
	if !val.IsConst {
		return v
	}
	m, ok := l.filled[v]
	if !ok {
		m = l.add(Value{DType: val.DType, Dims: val.Dims, Last: val.Last})
		l.emit(Fill{val.Const}, nil, []int{m})
		l.filled[v] = m
	}
	return m
}

// results lowers outputs and assignments.
func (l *lowering) results() {
	for i, o := range l.g.Outputs() {
		n := l.g.Nodes()[l.g.NodeOf(o.ID)]
		l.index, l.scope = l.g.NodeOf(o.ID), n.Scope
		t := l.g.Type(o.ID)
		out := l.add(Value{DType: t.DType, Dims: t.Shape, Space: Output, Index: i})
		l.Outputs = append(l.Outputs, External{o.Name, t, out})
		v := l.get(o.ID, false)
		if c := l.Values[v]; c.IsConst {
			l.emit(Fill{c.Const}, nil, []int{out})
			continue
		}
		l.emit(Copy{}, []int{v}, []int{out})
	}
	assigned := map[int]bool{}
	for _, a := range l.g.Assigns() {
		assigned[l.get(a.Var, l.last[a.Var])] = true
	}
	for _, a := range l.g.Assigns() {
		l.index, l.scope = l.g.NodeOf(a.Value), l.g.Nodes()[l.g.NodeOf(a.Value)].Scope
		last := l.last[a.Var]
		dst, src := l.get(a.Var, last), l.held(l.get(a.Value, last))
		root := l.Values[src].Root
		switch {
		case root == dst:
			continue // v takes the value it has
		case assigned[root]: // the old value of a variable that changes too
			tmp := l.like(src)
			l.emit(Copy{}, []int{src}, []int{tmp})
			src = tmp
		}
		l.assigns = append(l.assigns, assign{dst, src})
	}
}
