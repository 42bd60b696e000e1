package plan

import (
	"maps"
	"slices"

	"ebtrain/ddp/graph"
)

// derive saves passes over memory by computing arrays again in the groups that
// read them.
//
//   - An array that follows from others that a group reads anyway is not read:
//     the sign of a rectifier's result, where its operand is at hand.
//   - An array that every group which reads it can compute from one other, made
//     by an op that is not pointwise and so in memory anyway, is not kept; the
//     other is, in its place: the gradient before a rectifier instead of the one
//     behind it, the image of a batch norm instead of the centred one.
//
// All are exact: the same ops on the same operands.
func (l *lowering) derive() {
	for range maxDerive {
		d := newDeriving(l)
		d.drop()
		if len(d.copies) == 0 {
			d.swap()
		}
		if len(d.copies) == 0 {
			return
		}
		d.insert()
	}
}

// maxDerive bounds the rounds: in each, a group is changed once at most.
const maxDerive = 16

// maxOps is the number of ops that are worth less than reading an array.
const maxOps = 6

// deriving is one round.
type deriving struct {
	*fusion
	groups union
	arrays map[int][]int // by group: the arrays that it reads from memory
	copies []derived
	done   map[int]bool // groups that change in this round
}

// derived is an array v to be computed in a group, from ops in this order.
type derived struct {
	group, v int
	ops      []int // nodes
}

func newDeriving(l *lowering) *deriving {
	f := &fusion{lowering: l}
	f.produce()
	f.need()
	f.levels()
	f.sink()
	d := &deriving{fusion: f, groups: f.groups(), arrays: map[int][]int{}, done: map[int]bool{}}
	for i := range f.nodes {
		if !f.needed[i] || !f.fusible[i] || f.alone(i) {
			continue
		}
		g := d.groups.find(i)
		for _, v := range f.reads(i) {
			if d.outside(g, v) && f.full(i, v) && !slices.Contains(d.arrays[g], v) {
				d.arrays[g] = append(d.arrays[g], v)
			}
		}
	}
	return d
}

// outside says whether v is not made in group g.
func (d *deriving) outside(g, v int) bool {
	p := d.prod[v]
	return p < 0 || d.groups.find(p) != g
}

// drop finds arrays that follow from others that their group reads.
func (d *deriving) drop() {
	for _, g := range slices.Sorted(maps.Keys(d.arrays)) {
		for _, v := range d.arrays[g] {
			have := slices.DeleteFunc(slices.Clone(d.arrays[g]), func(x int) bool { return x == v })
			e := expansion{deriving: d, group: g, have: have}
			if e.expand(v) && len(e.missing) == 0 {
				d.copies = append(d.copies, derived{g, v, e.ops})
				break
			}
		}
	}
}

// swap finds arrays for which all their readers can read another.
func (d *deriving) swap() {
	for p := range d.nodes {
		if !d.needed[p] || !d.fusible[p] || len(d.nodes[p].out) != 1 {
			continue
		}
		d.swapOne(d.nodes[p].out[0], p)
	}
}

func (d *deriving) swapOne(v, p int) {
	var all []derived
	other := -1
	for _, g := range d.readers(v, p) {
		if g < 0 || d.done[g] {
			return
		}
		have := slices.DeleteFunc(slices.Clone(d.arrays[g]), func(x int) bool { return x == v })
		e := expansion{deriving: d, group: g, have: have}
		if !e.expand(v) || len(e.missing) > 1 {
			return
		}
		if len(e.missing) == 1 {
			if other >= 0 && other != e.missing[0] || !d.inMemory(e.missing[0]) {
				return
			}
			other = e.missing[0]
		}
		all = append(all, derived{g, v, e.ops})
	}
	for _, c := range all {
		d.done[c.group] = true
	}
	d.copies = append(d.copies, all...)
}

// readers are the groups other than its own that read v; -1 is among them if
// it is read by something else.
func (d *deriving) readers(v, p int) (groups []int) {
	own := d.groups.find(p)
	for _, u := range d.users[p] {
		g := d.groups.find(u)
		switch {
		case !d.fusible[u] || d.alone(u) || d.space[u] != d.space[p] || !slices.Contains(d.reads(u), v):
			return []int{-1}
		case g != own && !slices.Contains(groups, g):
			groups = append(groups, g)
		}
	}
	for _, a := range d.plan.assigns {
		if d.prod[a.src] == p {
			return []int{-1}
		}
	}
	if d.plan.Values[v].Space != Arena || d.plan.Values[v].Root != v {
		return []int{-1}
	}
	return groups
}

// inMemory says whether v is in the arena whoever reads it.
func (d *deriving) inMemory(v int) bool {
	p := d.prod[v]
	return p >= 0 && !d.fusible[p] && d.plan.Values[v].Space == Arena
}

// expansion follows an array back to arrays at hand.
type expansion struct {
	*deriving
	group   int
	have    []int
	ops     []int // the nodes on the way, in order
	missing []int // arrays on the way that are not at hand and are no op's result
}

// expand says whether v follows from what is at hand and missing by a few
// cheap ops.
func (e *expansion) expand(v int) bool {
	p := e.prod[v]
	if p < 0 || !e.fusible[p] || e.nodes[p].out[0] != v || !cheapOp(e.nodes[p].op) || e.space[p] != e.space[e.group] {
		return false
	}
	if slices.Contains(e.ops, p) {
		return true
	}
	for _, x := range e.operands(p) {
		x = e.source(x)
		if !e.full(p, x) || slices.Contains(e.have, x) || slices.Contains(e.missing, x) {
			continue
		}
		ops, missing := len(e.ops), len(e.missing)
		if !e.expand(x) {
			e.ops, e.missing = e.ops[:ops], append(e.missing[:missing], x)
		}
	}
	e.ops = append(e.ops, p)
	return len(e.ops) <= maxOps
}

// operands are what a copy of node p reads: what p reads, but the slope of a
// rectifier, which has been asked of its result (see lowering.sign), is asked of
// its operand.
func (d *deriving) operands(p int) []int {
	n := d.nodes[p]
	if x := d.source(n.in[0]); d.prod[x] >= 0 && d.nodes[d.prod[x]].out[0] == x && isSlope(n.op, d.nodes[d.prod[x]].op) {
		return d.nodes[d.prod[x]].in
	}
	return n.in
}

// isSlope says whether op is the derivative of the rectifier of, which has the
// same value at of's result and operand.
func isSlope(op, of any) bool {
	u, ok := op.(graph.Unary)
	switch {
	case !ok:
		return false
	case u.Fn == graph.Step:
		return of == graph.Unary{Fn: graph.Relu}
	}
	return u.Fn == graph.LeakyStep && u.A() >= 0 && of == graph.Unary{Fn: graph.LeakyRelu, Bits: u.Bits}
}

// insert puts the copies of the ops before their first readers.
func (d *deriving) insert() {
	before := make([][]node, len(d.nodes))
	for _, c := range d.copies {
		var users []int
		for i := range d.nodes {
			if d.needed[i] && d.fusible[i] && d.groups.find(i) == c.group && slices.Contains(d.reads(i), c.v) {
				users = append(users, i)
			}
		}
		first := users[0]
		copies := map[int]int{}
		for _, p := range c.ops {
			n := d.nodes[p]
			v := d.plan.Values[n.out[0]]
			in := slices.Clone(d.operands(p))
			for k, x := range in {
				if y, ok := copies[d.source(x)]; ok {
					in[k] = y
				}
			}
			y := d.add(Value{DType: v.DType, Dims: v.Dims, Last: v.Last})
			d.prod = append(d.prod, -1)
			copies[n.out[0]] = y
			before[first] = append(before[first], node{n.op, in, []int{y}, d.nodes[first].index, d.nodes[first].scope, true})
		}
		last := before[first][len(before[first])-1] // that makes c.v
		for _, u := range users {
			to := copies[c.v]
			if isSlope(d.nodes[u].op, last.op) {
				to = last.in[0]
			}
			d.replace(u, c.v, to)
		}
	}
	var nodes []node
	for i, n := range d.nodes {
		nodes = append(append(nodes, before[i]...), n)
	}
	d.nodes = nodes
}

// cheapOp says whether an op costs no more than a few cycles.
func cheapOp(op any) bool {
	switch op := op.(type) {
	case graph.Binary:
		return true
	case graph.Unary:
		switch op.Fn {
		case graph.Neg, graph.Abs, graph.Step, graph.Relu, graph.LeakyRelu, graph.LeakyStep, graph.Square, graph.Scale, graph.Shift:
			return true
		}
	}
	return false
}
