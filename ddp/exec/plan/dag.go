package plan

import (
	"fmt"
	"slices"
)

// node is an op before scheduling.
type node struct {
	op      fmt.Stringer
	in, out []int
	index   int // of the node of the graph that it stems from
	scope   string
	late    bool // belongs into the group of its readers
}

// dag is what the passes work on: the ops in topological order over the values
// of the plan.
type dag struct {
	*Plan
	nodes []node

	spare    []node    // memory of the nodes as they were before the last edit
	analysis *analysis // the last
}

func (d *dag) add(v Value) int {
	id := len(d.Values)
	v.Root, v.parent, v.bcast = id, noParent, noParent
	d.Values = append(d.Values, v)
	return id
}

// like is a new value with the type, extents and layout of v.
func (d *dag) like(v int) int {
	t := d.Values[v]
	return d.add(Value{DType: t.DType, Dims: t.Dims, Last: t.Last})
}

// instead is a node with another op that takes the place of n.
func (n node) instead(op fmt.Stringer, in ...int) node {
	return node{op: op, in: in, out: n.out, index: n.index, scope: n.scope}
}

// makers sets, by value, the node that makes it or what it shows, −1 if none does, in a
// list of that length.
func (d *dag) makers(maker []int) []int {
	for v := range maker {
		maker[v] = -1
	}
	for i := range d.nodes {
		for _, v := range d.nodes[i].out {
			maker[v] = i
		}
	}
	for v := range d.Values { // aliases show what their parents hold
		if p := d.Values[v].parent; p >= 0 && maker[v] < 0 {
			maker[v] = maker[p]
		}
	}
	return maker
}

// edit collects changes to the list of nodes, which are numbered as they were
// when it began, and makes them at once.
type edit struct {
	*dag
	before, after map[int][]node // new ones
	behind        map[int][]int  // old ones that move
	replaced      map[int]node
}

func (d *dag) edit() *edit {
	return &edit{d, map[int][]node{}, map[int][]node{}, map[int][]int{}, map[int]node{}}
}

func (e *edit) insertBefore(i int, n ...node) { e.before[i] = append(e.before[i], n...) }
func (e *edit) insertAfter(i int, n ...node)  { e.after[i] = append(e.after[i], n...) }
func (e *edit) replace(i int, n node)         { e.replaced[i] = n }

// move puts node i behind node to.
func (e *edit) move(i, to int) { e.behind[to] = append(e.behind[to], i) }

// apply makes the changes.
func (e *edit) apply() {
	if len(e.before)+len(e.after)+len(e.behind)+len(e.replaced) == 0 {
		return
	}
	moved := make([]bool, len(e.nodes))
	for _, list := range e.behind {
		for _, i := range list {
			moved[i] = true
		}
	}
	nodes := slices.Grow(e.spare[:0], len(e.nodes)+2*len(e.before)+2*len(e.after))
	var put func(i int)
	put = func(i int) {
		n, ok := e.replaced[i]
		if !ok {
			n = e.nodes[i]
		}
		nodes = append(append(append(nodes, e.before[i]...), n), e.after[i]...)
		for _, k := range e.behind[i] {
			put(k)
		}
	}
	for i := range e.nodes {
		if !moved[i] {
			put(i)
		}
	}
	e.dag.spare, e.dag.nodes = e.nodes, nodes
}

// reread makes, at once, node i read value to instead of value from.
func (a *analysis) reread(i, from, to int) {
	in := slices.Clone(a.nodes[i].in)
	for k, v := range in {
		if a.source(v) == from {
			in[k] = to
		}
	}
	a.nodes[i].in = in
	a.read(i, make([]int, 0, len(in)))
}
