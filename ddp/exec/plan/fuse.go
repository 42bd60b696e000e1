package plan

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// fusion is the grouping of nodes.
type fusion struct {
	*analysis
	kept []bool // by value: read from outside its group
}

// fuse makes one node of each group, due when the first of its results is, and
// drops what nothing needs.
func fuse(d *dag) []node {
	f := &fusion{analysis: analyse(d), kept: make([]bool, len(d.Values))}
	return f.units()
}

// groups joins fusible nodes of one level and space that are connected, by an
// edge or by reading the same array.
func (a *analysis) groups() union {
	u := newUnion(len(a.nodes))
	type reader struct{ node, level int32 }     // of a value, whose extents and type are its own
	readers := newChains[reader](len(a.Values)) // the first of each level
	join := func(v int, r reader) {
		for known := range readers.of(v) {
			if known.level == r.level {
				u.join(int(r.node), int(known.node))
				return
			}
		}
		readers.add(v, r)
	}
	for i := range a.nodes {
		if !a.needed[i] || !a.fusible[i] || a.alone(i) {
			continue
		}
		for _, v := range a.reads[i] {
			if p := a.made[v]; p >= 0 && a.inside(p, i, v) && a.sunk[p] == a.sunk[i] {
				u.join(p, i)
			}
			if a.full(i, v) {
				join(v, reader{int32(i), int32(a.sunk[i])})
			}
		}
	}
	return u
}

// units makes a node of each group.
func (f *fusion) units() []node {
	u := f.groups()
	f.keep(u)
	members := make([][]int, len(f.nodes))
	for i := range f.nodes {
		if f.needed[i] {
			r := u.find(i)
			members[r] = append(members[r], i)
		}
	}
	var units []node
	for r, m := range members {
		switch {
		case len(m) == 0:
		case f.fusible[r]:
			units = append(units, f.group(m))
		default:
			units = append(units, f.nodes[r])
		}
	}
	return units
}

// keep marks the values that are read from outside the group that makes them.
func (f *fusion) keep(u union) {
	mark := func(v int) {
		for f.Values[v].parent >= 0 {
			v = f.Values[v].parent
		}
		f.kept[v] = true
	}
	for i := range f.nodes {
		if !f.needed[i] {
			continue
		}
		for _, v := range f.reads[i] {
			if p := f.made[v]; p >= 0 && (u.find(p) != u.find(i) || !f.inside(p, i, v)) {
				mark(v)
			}
		}
	}
	for _, a := range f.assigns {
		mark(a.src)
	}
}

// group makes the fused node of some nodes, given in order.
func (f *fusion) group(m []int) node {
	sp := f.space[m[0]]
	g := grouping{f: f, code: &Fused{DType: sp.dtype, Dims: sp.dims}, reg: map[int]int{}, inner: map[int]bool{}, known: map[Instr]int{}}
	un := node{op: g.code, index: math.MaxInt}
	for _, i := range m {
		g.inner[f.nodes[i].out[0]] = true
	}
	for _, i := range m { // loads and constants first: their registers come first
		for _, v := range f.reads[i] {
			g.operand(v, &un)
		}
	}
	for v, r := range g.reg {
		if r < 0 {
			g.reg[v] = len(g.code.Loads) + ^r
		}
	}
	var reduced []int
	for _, i := range m {
		n := &f.nodes[i]
		if f.kept[n.out[0]] && n.index < un.index {
			un.index, un.scope = n.index, n.scope
		}
		switch op := n.op.(type) {
		case graph.Reduce, centred:
			access := NewAccess(sp.dims, f.Values[n.out[0]].Dims)
			fn, isCentred := reduction(op)
			g.code.Sums = append(g.code.Sums, Reduction{fn, g.register(f.reads[i][0]), isCentred, access})
			reduced = append(reduced, n.out[0])
			continue
		case graph.Broadcast:
			g.reg[n.out[0]] = g.register(f.reads[i][0])
		default:
			g.instr(i)
		}
		if f.kept[n.out[0]] {
			g.code.Stores = append(g.code.Stores, g.reg[n.out[0]])
			un.out = append(un.out, n.out[0])
		}
	}
	un.out = append(un.out, reduced...)
	return un
}

// grouping is a fused node under construction.
type grouping struct {
	f     *fusion
	code  *Fused
	reg   map[int]int   // value → register; constants are ^number at first
	inner map[int]bool  // values made in the group
	known map[Instr]int // instruction → its register
}

// operand gives a value from outside the group a register.
func (g *grouping) operand(v int, un *node) {
	if _, ok := g.reg[v]; ok {
		return
	}
	val := &g.f.Values[v]
	switch {
	case val.IsConst:
		g.reg[v] = ^len(g.code.Consts)
		g.code.Consts = append(g.code.Consts, val.Const)
	case !g.inner[v]:
		g.reg[v] = len(g.code.Loads)
		g.code.Loads = append(g.code.Loads, NewAccess(g.code.Dims, val.Dims))
		un.in = append(un.in, v)
	}
}

// instr adds the instruction of node i, if there is no equal one.
func (g *grouping) instr(i int) {
	c := Instr{Op: g.f.nodes[i].op.(graph.Op)}
	for k, v := range g.f.reads[i] {
		switch k {
		case 0:
			c.X = g.register(v)
		case 1:
			c.Y = g.register(v)
		default:
			c.Z = g.register(v)
		}
	}
	if b, ok := c.Op.(graph.Binary); ok && (b.Fn == graph.Add || b.Fn == graph.Mul) && c.X > c.Y {
		c.X, c.Y = c.Y, c.X // so that groups which compute alike are alike
	}
	r, ok := g.known[c]
	if !ok {
		g.code.Code = append(g.code.Code, c)
		r = g.code.Registers() - 1
		g.known[c] = r
	}
	g.reg[g.f.nodes[i].out[0]] = r
}

// register is the register of a value that has been made.
func (g *grouping) register(v int) int {
	r, ok := g.reg[v]
	if !ok {
		panic(fmt.Sprintf("plan: value %d is read before it is made", v))
	}
	return r
}
