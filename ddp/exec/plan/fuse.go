package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// space is what the members of a group have in common.
type space struct {
	dims  graph.Shape
	dtype graph.DType
}

// unit is a step before scheduling.
type unit struct {
	op      fmtStringer
	in, out []int
	key     int // when it is due, in terms of the nodes of the graph
	scope   string
}

type fmtStringer = interface{ String() string }

// fusion is the state of the grouping of nodes.
type fusion struct {
	*lowering
	prod    []int // by value: the node that makes it, -1 if none
	needed  []bool
	level   []int
	users   [][]int // by node: the needed nodes that read it
	kept    []bool  // by value: read from outside its group
	space   []space // by node, of fusible nodes
	fusible []bool
}

// fuse groups the nodes into units and drops what nothing needs.
//
// Each node has a level: an edge inside a group keeps the level, any other
// edge raises it. So a path that leaves a group cannot come back to it, and
// groups never depend on each other in a circle.
func (l *lowering) fuse() []unit {
	f := &fusion{lowering: l}
	f.produce()
	f.need()
	f.levels()
	f.sink()
	return f.units()
}

func (f *fusion) produce() {
	f.prod = make([]int, len(f.plan.Values))
	for i := range f.prod {
		f.prod[i] = -1
	}
	f.fusible, f.space = make([]bool, len(f.nodes)), make([]space, len(f.nodes))
	for i, n := range f.nodes {
		for _, v := range n.out {
			f.prod[v] = i
		}
		sp := n.out
		switch n.op.(type) {
		case graph.Unary, graph.Binary, graph.Select, graph.Broadcast:
		case graph.Reduce, centred:
			sp = n.in
		default:
			continue
		}
		v := f.plan.Values[sp[0]]
		f.fusible[i], f.space[i] = true, space{v.Dims, v.DType}
	}
	for v := range f.plan.Values { // aliases show what their parents hold
		if p := f.plan.Values[v].parent; p >= 0 && f.prod[v] < 0 {
			f.prod[v] = f.prod[p]
		}
	}
}

// source is the value that a fused reader of v reads: broadcasts and aliases
// of the same extents are seen through.
func (f *fusion) source(v int) int {
	for {
		val := &f.plan.Values[v]
		switch {
		case val.bcast >= 0:
			v = val.bcast
		case val.parent >= 0 && f.plan.Values[val.parent].Dims == val.Dims:
			v = val.parent
		default:
			return v
		}
	}
}

// reads are the values that node i reads.
func (f *fusion) reads(i int) []int {
	n := &f.nodes[i]
	if !f.fusible[i] {
		return n.in
	}
	in := make([]int, len(n.in))
	for k, v := range n.in {
		in[k] = f.source(v)
	}
	return in
}

// need marks the nodes that outputs and assignments need.
func (f *fusion) need() {
	f.needed = make([]bool, len(f.nodes))
	f.users = make([][]int, len(f.nodes))
	for _, a := range f.plan.assigns {
		if p := f.prod[a.src]; p >= 0 {
			f.needed[p] = true
		}
	}
	for i := len(f.nodes) - 1; i >= 0; i-- {
		if o := f.nodes[i].out; len(o) == 1 && f.plan.Values[o[0]].Space == Output {
			f.needed[i] = true
		}
		if !f.needed[i] {
			continue
		}
		for _, v := range f.reads(i) {
			if p := f.prod[v]; p >= 0 {
				f.needed[p] = true
				f.users[p] = append(f.users[p], i)
			}
		}
	}
}

// inside says whether node i may read value v, made by node p, without v
// being stored: both can be in one group.
func (f *fusion) inside(p, i, v int) bool {
	if !f.fusible[p] || !f.fusible[i] || f.space[p] != f.space[i] || f.nodes[p].out[0] != v || f.alone(i) {
		return false
	}
	switch f.nodes[p].op.(type) {
	case graph.Reduce, centred:
		return false
	}
	return true
}

// alone says whether node i is a reduction that has to be a step of its own.
func (f *fusion) alone(i int) bool {
	if !f.o.Deterministic {
		return false
	}
	switch f.nodes[i].op.(type) {
	case graph.Reduce, centred:
		return true
	}
	return false
}

// levels gives each node the least level that its inputs allow.
func (f *fusion) levels() {
	f.level = make([]int, len(f.nodes))
	for i := range f.nodes {
		if !f.needed[i] {
			continue
		}
		for _, v := range f.reads(i) {
			p := f.prod[v]
			if p < 0 {
				continue
			}
			lv := f.level[p]
			if !f.inside(p, i, v) {
				lv++
			}
			f.level[i] = max(f.level[i], lv)
		}
	}
}

// sink moves pointwise nodes that read one array up to the level of their
// first reader, so that they join its group: recomputing from the operand
// there costs no more memory than keeping the result.
func (f *fusion) sink() {
	assigned := map[int]bool{}
	for _, a := range f.plan.assigns {
		assigned[f.prod[a.src]] = true
	}
	for i := len(f.nodes) - 1; i >= 0; i-- {
		if !f.needed[i] || !f.fusible[i] || assigned[i] || !f.nodes[i].late && !f.lean(i) {
			continue
		}
		if bound, joins := f.bound(i); joins {
			f.level[i] = max(f.level[i], bound)
		}
	}
}

// bound is the greatest level that the readers of node i allow, and whether
// one of them could then be in its group.
func (f *fusion) bound(i int) (bound int, joins bool) {
	bound = math.MaxInt
	for _, u := range f.users[i] {
		lv, in := f.level[u], true
		for _, v := range f.reads(u) {
			if f.prod[v] == i && !f.inside(i, u, v) {
				lv, in = f.level[u]-1, false
				break
			}
		}
		switch {
		case lv < bound:
			bound, joins = lv, in
		case lv == bound:
			joins = joins || in
		}
	}
	return bound, joins
}

// lean says whether node i is pointwise and reads at most one array of its
// own size.
func (f *fusion) lean(i int) bool {
	switch f.nodes[i].op.(type) {
	case graph.Unary, graph.Binary, graph.Select:
	default:
		return false
	}
	full := -1
	for _, v := range f.reads(i) {
		if val := &f.plan.Values[v]; !val.IsConst && val.Dims == f.space[i].dims && v != full {
			if full >= 0 {
				return false
			}
			full = v
		}
	}
	return true
}
