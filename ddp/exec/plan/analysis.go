package plan

import (
	"math"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// space is what the members of a group have in common.
type space struct {
	dims  graph.Shape
	dtype graph.DType
}

// analysis is what passes ask about the nodes as they are. Values that are
// added later have no producer. A dag has one: the next takes its memory.
//
// Each node has a level: an edge inside a group keeps the level, any other
// edge raises it. So a path that leaves a group cannot come back to it, and
// groups never depend on each other in a circle. Nodes that may well run later
// sink: see sink.
type analysis struct {
	*dag
	made     []int   // by value: the node that makes it, -1 if none
	reads    [][]int // by node: the values that it reads
	users    [][]int // by node: the needed nodes that read it, last first
	needed   []bool  // by node: an output or assignment depends on it
	assigned []bool  // by node: it makes an assigned value
	fusible  []bool
	space    []space // by node, of fusible nodes
	level    []int   // by node: the least that its inputs allow
	sunk     []int   // by node: the level at which it joins a group

	readList, userList []int // what reads and users are parts of
}

func analyse(d *dag) *analysis {
	if d.analysis == nil {
		d.analysis = &analysis{dag: d}
	}
	a, n := d.analysis, len(d.nodes)
	a.made, a.reads, a.users = zeros(a.made, len(d.Values)), zeros(a.reads, n), zeros(a.users, n)
	a.needed, a.assigned, a.fusible = zeros(a.needed, n), zeros(a.assigned, n), zeros(a.fusible, n)
	a.space, a.level = zeros(a.space, n), zeros(a.level, n)
	a.findProducers()
	a.findReads()
	a.findUsers()
	a.findLevels()
	a.sink()
	return a
}

// zeros is n zeros, in the memory of s if it is large enough. There is some more of
// it than is needed now: nodes are added.
func zeros[E any](s []E, n int) []E {
	if cap(s) < n {
		s = make([]E, 0, n+n/8)
	}
	s = s[:n]
	clear(s)
	return s
}

func (a *analysis) findProducers() {
	a.makers(a.made)
	for i := range a.nodes {
		n := &a.nodes[i]
		over := n.out
		switch n.op.(type) {
		case graph.Unary, graph.Binary, graph.Select, graph.Broadcast:
		case graph.Reduce, centred:
			over = n.in
		default:
			continue
		}
		v := &a.Values[over[0]]
		a.fusible[i], a.space[i] = true, space{v.Dims, v.DType}
	}
}

// producer is the node that makes v, -1 if there is none.
func (a *analysis) producer(v int) int {
	if v >= len(a.made) {
		return -1
	}
	return a.made[v]
}

// source is the value that a fused reader of v reads: broadcasts and aliases
// of the same extents are seen through.
func (a *analysis) source(v int) int {
	for {
		val := &a.Values[v]
		switch {
		case val.bcast >= 0:
			v = val.bcast
		case val.parent >= 0 && a.Values[val.parent].Dims == val.Dims:
			v = val.parent
		default:
			return v
		}
	}
}

// findReads finds the values that each node reads.
func (a *analysis) findReads() {
	n := 0
	for i := range a.nodes {
		n += len(a.nodes[i].in)
	}
	a.readList = zeros(a.readList, n)
	list := a.readList[:0]
	for i := range a.nodes {
		list = a.read(i, list)
	}
}

// read finds the values that node i reads. The list is appended to one that has room,
// unless it is the node's own.
func (a *analysis) read(i int, list []int) []int {
	in := a.nodes[i].in
	if !a.fusible[i] {
		a.reads[i] = in
		return list
	}
	from := len(list)
	for _, v := range in {
		list = append(list, a.source(v))
	}
	a.reads[i] = list[from:len(list):len(list)]
	return list
}

func (a *analysis) findUsers() {
	a.findNeeded()
	readers, n := make([]int, len(a.nodes)), 0
	for i := range a.nodes {
		a.eachRead(i, func(p int) { readers[p]++; n++ })
	}
	a.userList = zeros(a.userList, n)
	list := a.userList
	for p, n := range readers {
		a.users[p], list = list[:0:n], list[n:]
	}
	for i := len(a.nodes) - 1; i >= 0; i-- {
		a.eachRead(i, func(p int) { a.users[p] = append(a.users[p], i) })
	}
}

// eachRead calls f for each value that node i reads, if it is needed, with the node
// that makes it.
func (a *analysis) eachRead(i int, f func(p int)) {
	if !a.needed[i] {
		return
	}
	for _, v := range a.reads[i] {
		if p := a.made[v]; p >= 0 {
			f(p)
		}
	}
}

// findNeeded finds the nodes on which an output or assignment depends.
func (a *analysis) findNeeded() {
	for _, s := range a.assigns {
		if p := a.made[s.src]; p >= 0 {
			a.needed[p], a.assigned[p] = true, true
		}
	}
	for i := len(a.nodes) - 1; i >= 0; i-- {
		if o := a.nodes[i].out; len(o) == 1 && a.Values[o[0]].Space == Output {
			a.needed[i] = true
		}
		a.eachRead(i, func(p int) { a.needed[p] = true })
	}
}

func isReduction(op any) bool {
	switch op.(type) {
	case graph.Reduce, centred:
		return true
	}
	return false
}

// alone says whether node i is a reduction that has to be a step of its own.
func (a *analysis) alone(i int) bool { return a.o.Deterministic && isReduction(a.nodes[i].op) }

// inside says whether node i may read value v, made by node p, without v
// being stored: both can be in one group.
func (a *analysis) inside(p, i, v int) bool {
	return a.fusible[p] && a.fusible[i] && a.space[p] == a.space[i] && a.nodes[p].out[0] == v &&
		!isReduction(a.nodes[p].op) && !a.alone(i)
}

// full says whether value v, read by fusible node i, is an array of one
// element for each of the node's points.
func (a *analysis) full(i, v int) bool {
	val := &a.Values[v]
	return !val.IsConst && val.Dims == a.space[i].dims
}

func (a *analysis) findLevels() {
	arrives := a.arrivals()
	for i := range a.nodes {
		if !a.needed[i] {
			continue
		}
		if arrives[i] {
			a.level[i] = -1
			continue
		}
		for _, v := range a.reads[i] {
			p := a.made[v]
			if p < 0 {
				continue
			}
			lv := a.level[p]
			if !a.inside(p, i, v) {
				lv++
			}
			a.level[i] = max(a.level[i], lv)
		}
	}
}

// arrivals marks, by node, those that make what a variable is assigned of variables'
// parts, which are gathered and not computed with: who reads it is at the level at which
// it would be that reads the variable. No group is before them.
func (a *analysis) arrivals() []bool {
	gathers, arrives := make([]bool, len(a.nodes)), make([]bool, len(a.nodes))
	moves := make([]bool, len(a.nodes)) // variables alone
	for i := range a.nodes {
		start, ok := a.nodes[i].op.(Start)
		gathers[i], moves[i] = ok && start.Kind == collective.AllGather, !a.fusible[i] && len(a.reads[i]) > 0
		for _, v := range a.reads[i] {
			if p := a.made[v]; p >= 0 {
				gathers[i], moves[i] = gathers[i] || gathers[p], moves[i] && moves[p]
			} else {
				moves[i] = moves[i] && a.Values[a.Values[v].Root].Space == Var
			}
		}
	}
	for _, s := range a.assigns {
		if p := a.made[s.src]; p >= 0 {
			arrives[p] = gathers[p] && moves[p]
		}
	}
	return arrives
}

// sink moves pointwise nodes that read one array up to the level of their
// first reader, so that they join its group: recomputing from the operand
// there costs no more memory than keeping the result.
func (a *analysis) sink() {
	a.sunk = append(a.sunk[:0], a.level...)
	for i := len(a.nodes) - 1; i >= 0; i-- {
		if !a.needed[i] || !a.fusible[i] || a.assigned[i] || !a.nodes[i].late && !a.lean(i) {
			continue
		}
		if bound, joins := a.bound(i); joins {
			a.sunk[i] = max(a.sunk[i], bound)
		}
	}
}

// bound is the greatest level that the readers of node i allow, and whether
// one of them could then be in its group.
func (a *analysis) bound(i int) (bound int, joins bool) {
	bound = math.MaxInt
	for _, u := range a.users[i] {
		lv, in := a.sunk[u], true
		for _, v := range a.reads[u] {
			if a.made[v] == i && !a.inside(i, u, v) {
				lv, in = a.sunk[u]-1, false
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
func (a *analysis) lean(i int) bool {
	switch a.nodes[i].op.(type) {
	case graph.Unary, graph.Binary, graph.Select:
	default:
		return false
	}
	one := -1
	for _, v := range a.reads[i] {
		if a.full(i, v) && v != one {
			if one >= 0 {
				return false
			}
			one = v
		}
	}
	return true
}
