package plan

import "slices"

// unshare keeps what a collective takes, and a later pass has found another reader for,
// in memory of its own: a copy of it goes into the bucket, which is reduced in place.
// When buckets were laid out nothing else read it, or it would have been copied then.
func unshare(d *dag) {
	a := analyse(d)
	e := d.edit()
	for i, n := range d.nodes {
		if _, ok := n.op.(Start); !ok {
			continue
		}
		in := slices.Clone(n.in)
		for k, v := range n.in {
			if a.readBeside(i, v) {
				in[k] = d.like(v)
				d.leave(v, in[k])
				e.insertBefore(i, node{op: Copy{}, in: []int{v}, out: in[k : k+1 : k+1], index: n.index, scope: n.scope})
			}
		}
		n.in = in
		e.replace(i, n)
	}
	e.apply()
}

// readBeside says whether a node other than Start i reads what shows the memory of v,
// and what made v.
func (a *analysis) readBeside(i, v int) bool {
	p := a.producer(v)
	return p >= 0 && slices.ContainsFunc(a.users[p], func(u int) bool {
		return u != i && slices.ContainsFunc(a.reads[u], func(x int) bool { return a.producer(x) == p && a.Values[x].Root == a.Values[v].Root })
	})
}

// leave moves v, with all that shows it, out of its bucket, where c takes its place.
func (d *dag) leave(v, c int) {
	top := d.shows(v)
	bucket, off := d.Values[top].Root, d.Values[top].Off
	d.Values[c].Root, d.Values[c].Off = bucket, d.Values[v].Off
	for w := range d.Values {
		if d.Values[w].Root == bucket && d.shows(w) == top {
			d.Values[w].Root, d.Values[w].Off = top, d.Values[w].Off-off
		}
	}
}

// shows is the value whose contents v shows, itself if it is no alias.
func (d *dag) shows(v int) int {
	for d.Values[v].parent >= 0 {
		v = d.Values[v].parent
	}
	return v
}
