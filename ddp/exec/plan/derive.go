package plan

import (
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
func derive(d *dag) {
	for range maxDerive {
		r := newDeriving(d)
		r.drop()
		if len(r.copies) == 0 {
			r.swap()
		}
		if len(r.copies) == 0 {
			return
		}
		r.insert()
	}
}

// maxDerive bounds the rounds: in each, a group is changed once at most.
const maxDerive = 16

// maxOps is the number of ops that are worth less than reading an array.
const maxOps = 6

// deriving is one round.
type deriving struct {
	*analysis
	groups  union
	arrays  []groupRead // what groups read from memory, by group
	reading chains[int] // by array: the groups
	copies  []derived
	done    map[int]bool // groups that change in this round
	visits  int          // of nodes, by expansions
}

// groupRead says that a group reads an array from memory.
type groupRead struct{ group, array int }

// derived is an array v to be computed in a group, from ops in this order.
type derived struct {
	group, v int
	ops      []int // nodes
}

func newDeriving(d *dag) *deriving {
	r := &deriving{analysis: analyse(d), reading: newChains[int](len(d.Values)), done: map[int]bool{}}
	r.groups = r.analysis.groups()
	for i := range d.nodes {
		if !r.needed[i] || !r.fusible[i] || r.alone(i) {
			continue
		}
		g := r.groups.find(i)
		for _, v := range r.reads[i] {
			if p := r.producer(v); (p < 0 || r.groups.find(p) != g) && r.full(i, v) && !r.has(g, v) {
				r.reading.add(v, g)
				r.arrays = append(r.arrays, groupRead{g, v})
			}
		}
	}
	slices.SortStableFunc(r.arrays, func(a, b groupRead) int { return a.group - b.group })
	return r
}

// has says whether group g reads array v from memory.
func (d *deriving) has(g, v int) bool {
	for r := range d.reading.of(v) {
		if r == g {
			return true
		}
	}
	return false
}

// drop finds arrays that follow from others that their group reads.
func (d *deriving) drop() {
	last := -1 // the group that changes
	for _, r := range d.arrays {
		if r.group == last {
			continue
		}
		e := expansion{deriving: d, group: r.group}
		if e.expand(r.array, 1) && e.missing == nil {
			d.copies = append(d.copies, derived{r.group, r.array, e.ops})
			last = r.group
		}
	}
}

// swap finds arrays for which all their readers can read another.
func (d *deriving) swap() {
	for p, n := range d.nodes {
		if d.needed[p] && d.fusible[p] && len(n.out) == 1 {
			d.swapOne(n.out[0], p)
		}
	}
}

func (d *deriving) swapOne(v, p int) {
	var all []derived
	other := -1
	groups, ok := d.readers(v, p)
	if !ok {
		return
	}
	for _, g := range groups {
		e := expansion{deriving: d, group: g}
		if d.done[g] || !e.expand(v, 1) {
			return
		}
		for _, x := range e.missing {
			if other >= 0 && other != x {
				return
			}
			other = x
		}
		all = append(all, derived{g, v, e.ops})
	}
	for _, c := range all {
		d.done[c.group] = true
	}
	d.copies = append(d.copies, all...)
}

// readers are the groups other than its own that read v, made by node p; it is
// not ok if something else reads it.
func (d *deriving) readers(v, p int) (groups []int, ok bool) {
	if val := &d.Values[v]; d.assigned[p] || val.Space != Arena || val.Root != v {
		return nil, false
	}
	known := map[int]bool{d.groups.find(p): true}
	for _, u := range d.users[p] {
		if !d.fusible[u] || d.alone(u) || d.space[u] != d.space[p] || !slices.Contains(d.reads[u], v) {
			return nil, false
		}
		if g := d.groups.find(u); !known[g] {
			known[g] = true
			groups = append(groups, g)
		}
	}
	return groups, true
}

// inMemory says whether v is in the arena whoever reads it.
func (d *deriving) inMemory(v int) bool {
	p := d.producer(v)
	return p >= 0 && !d.fusible[p] && d.Values[v].Space == Arena
}

// expansion follows an array back to what its group reads besides, and to at
// most one other array in memory. It visits maxOps nodes at most.
type expansion struct {
	*deriving
	group   int
	ops     []int // the nodes on the way, in order
	missing []int // the other array
}

// expand says whether v, depth ops away from the array, follows by a few cheap
// ops.
func (e *expansion) expand(v, depth int) bool {
	p := e.producer(v)
	if p < 0 || !e.fusible[p] || e.nodes[p].out[0] != v || !cheapOp(e.nodes[p].op) || e.space[p] != e.space[e.group] {
		return false
	}
	if slices.Contains(e.ops, p) {
		return true
	}
	if len(e.ops)+depth > maxOps {
		return false
	}
	e.visits++
	for _, x := range e.operands(p) {
		x = e.source(x)
		switch {
		case !e.full(p, x), e.has(e.group, x), slices.Contains(e.missing, x):
		case e.inMemory(x):
			if e.missing = append(e.missing, x); len(e.missing) > 1 {
				return false
			}
		case !e.expand(x, depth+1):
			return false
		}
	}
	e.ops = append(e.ops, p)
	return true
}

// operands are what a copy of node p reads: what p reads, but the slope of a
// rectifier, which has been asked of its result (see lowering.ofResult), is asked
// of its operand.
func (d *deriving) operands(p int) []int {
	n := d.nodes[p]
	x := d.source(n.in[0])
	if q := d.producer(x); q >= 0 && d.nodes[q].out[0] == x && isSlope(n.op, d.nodes[q].op) {
		return d.nodes[q].in
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
	e := d.edit()
	for _, c := range d.copies {
		users := slices.DeleteFunc(slices.Clone(d.users[d.producer(c.v)]), func(u int) bool {
			return d.groups.find(u) != c.group || !slices.Contains(d.reads[u], c.v)
		})
		slices.Sort(users)
		first := d.nodes[users[0]]
		copies := map[int]int{} // by value: its copy
		var last node           // that makes c.v
		for _, p := range c.ops {
			n := d.nodes[p]
			in := slices.Clone(d.operands(p))
			for k, x := range in {
				if y, ok := copies[d.source(x)]; ok {
					in[k] = y
				}
			}
			y := d.like(n.out[0])
			copies[n.out[0]] = y
			last = node{n.op, in, []int{y}, first.index, first.scope, true}
			e.insertBefore(users[0], last)
		}
		for _, u := range slices.Compact(users) {
			to := copies[c.v]
			if isSlope(d.nodes[u].op, last.op) {
				to = last.in[0]
			}
			d.reread(u, c.v, to)
		}
	}
	e.apply()
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
