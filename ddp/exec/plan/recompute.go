package plan

import "slices"

// recompute lets later groups compute again what one pointwise op made of a
// value that they can read anyway, so that the result need not be kept: the
// normalised image of a batch norm, from the centred one, say.
func recompute(d *dag) {
	a := analyse(d)
	e := d.edit()
	type at struct{ node, level int }
	copies := map[at]int{} // the values of the copies
	for i, n := range d.nodes {
		if !a.needed[i] || !a.fusible[i] || !a.lean(i) || !a.cheap(i) {
			continue
		}
		users := slices.Sorted(slices.Values(a.users[i])) // the copy goes before the first
		a.users[i] = nil
		for _, u := range users {
			if a.level[u] == a.level[i] {
				a.users[i] = append(a.users[i], u)
				continue
			}
			k := at{i, a.level[u]}
			c, ok := copies[k]
			if !ok {
				c = d.like(n.out[0])
				copies[k] = c
				e.insertBefore(u, node{n.op, n.in, []int{c}, d.nodes[u].index, d.nodes[u].scope, n.late})
			}
			a.reread(u, n.out[0], c)
		}
	}
	e.apply()
}

// cheap says whether every reader of node i outside its group could compute it
// again from an operand that is kept for others as long. There is such a reader.
func (a *analysis) cheap(i int) bool {
	until, ok := a.operandKept(i)
	if !ok {
		return false
	}
	outside := false
	for _, u := range a.users[i] {
		if !a.readsInside(i, u) || a.level[u] > max(until, a.level[i]) {
			return false
		}
		outside = outside || a.level[u] > a.level[i]
	}
	return outside
}

// operandKept is the last level at which others read the array that node i is made of, −1 if
// none do; false if it is made of none.
func (a *analysis) operandKept(i int) (until int, ok bool) {
	from := -1
	for _, v := range a.reads[i] {
		if a.full(i, v) {
			from = v
		}
	}
	if from < 0 {
		return 0, false
	}
	until = -1
	if p := a.producer(from); p >= 0 {
		for _, u := range a.users[p] {
			if u != i {
				until = max(until, a.level[u])
			}
		}
	}
	return until, true
}

// readsInside says whether all that node u reads of what node i makes is its result, which
// could be made in the group of u.
func (a *analysis) readsInside(i, u int) bool {
	for _, v := range a.reads[u] {
		if a.producer(v) == i && (v != a.nodes[i].out[0] || !a.inside(i, u, v)) {
			return false
		}
	}
	return true
}
