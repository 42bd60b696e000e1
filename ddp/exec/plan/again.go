package plan

import "slices"

// again lets later groups compute again what one pointwise op made of a value
// that they can read anyway, so that the result need not be kept: the
// normalised image of a batch norm, from the centred one, say.
func (l *lowering) again() {
	f := &fusion{lowering: l}
	f.produce()
	f.need()
	f.levels()
	copies := map[[2]int]int{} // node and level → the value of the copy
	before := make([][]int, len(f.nodes))
	for i := range f.nodes {
		if !f.needed[i] || !f.fusible[i] || !f.lean(i) || !f.cheap(i) {
			continue
		}
		users := slices.Sorted(slices.Values(f.users[i])) // the copy goes before the first
		f.users[i] = nil
		for _, u := range users {
			if f.level[u] == f.level[i] {
				f.users[i] = append(f.users[i], u)
				continue
			}
			k := [2]int{i, f.level[u]}
			c, ok := copies[k]
			if !ok {
				v := f.plan.Values[f.nodes[i].out[0]]
				c = l.add(Value{DType: v.DType, Dims: v.Dims, Last: v.Last})
				f.prod = append(f.prod, -1)
				copies[k] = c
				before[u] = append(before[u], i, c)
			}
			f.replace(u, f.nodes[i].out[0], c)
		}
	}
	var nodes []node
	for u := range f.nodes {
		for k := 0; k < len(before[u]); k += 2 {
			n := f.nodes[before[u][k]]
			nodes = append(nodes, node{n.op, n.in, []int{before[u][k+1]}, f.nodes[u].index, f.nodes[u].scope, n.late})
		}
		nodes = append(nodes, f.nodes[u])
	}
	l.nodes = nodes
}

// cheap says whether every reader of node i outside its group could compute it
// again from an operand that is kept for others as long.
func (f *fusion) cheap(i int) bool {
	out := f.nodes[i].out[0]
	full := -1
	for _, v := range f.reads(i) {
		if val := &f.plan.Values[v]; !val.IsConst && val.Dims == f.space[i].dims {
			full = v
		}
	}
	if full < 0 {
		return false
	}
	until := -1 // the last level at which the operand is read by others
	if p := f.prod[full]; p >= 0 {
		for _, u := range f.users[p] {
			if u != i {
				until = max(until, f.level[u])
			}
		}
	}
	some := false
	for _, u := range f.users[i] {
		for _, v := range f.reads(u) {
			if f.prod[v] == i && (v != out || !f.inside(i, u, v)) {
				return false
			}
		}
		if f.level[u] > f.level[i] {
			some = true
			if f.level[u] > until {
				return false
			}
		}
	}
	return some
}

// replace makes node u read value to instead of value from.
func (f *fusion) replace(u, from, to int) {
	in := append([]int(nil), f.nodes[u].in...)
	for k, v := range in {
		if f.source(v) == from {
			in[k] = to
		}
	}
	f.nodes[u].in = in
}
