package simulate

import (
	"ebtrain/collective"
	"ebtrain/collective/schedule"
)

// grid is hosts in rows and columns: how many bytes they send there.
type grid struct {
	schedule.Grid
	ranks []int           // of each host
	cuts  map[cut]bounded // made so far
}

// cut is how a chunk is cut into slices.
type cut struct {
	bytes int  // of a vector, or of every part
	parts bool // hosts have slices by their ranks
}

// bounded are the bounds of slices in bytes.
type bounded []int

// elem is the bytes of an element: vectors are of float32.
const elem = 4

// slice is the bytes of slice s.
func (b bounded) slice(s int) int { return b[s+1] - b[s] }

// held is the bytes of all slices that host h holds.
func (g *grid) held(h int, b bounded) int {
	lo, hi := g.Held(h)
	return b[hi] - b[lo]
}

// bounds are those of the slices of a step's chunk.
func (g *grid) bounds(c schedule.Call, s schedule.Step) bounded {
	k := cut{s.Hi - s.Lo, c.Kind != collective.AllReduce}
	b, ok := g.cuts[k]
	if !ok {
		if k.parts {
			b = g.Deal(nil, g.ranks, k.bytes)
		} else {
			b = g.Cuts(nil, k.bytes/elem)
			for i := range b {
				b[i] *= elem
			}
		}
		if g.cuts == nil {
			g.cuts = map[cut]bounded{}
		}
		g.cuts[k] = b
	}
	return b
}

// outgoing is what host h sends in a step.
func (g *grid) outgoing(h int, what schedule.What, b bounded) (messages, bytes int) {
	first, end := g.Row(g.RowOf(h))
	switch what {
	case schedule.RowAddends:
		for o := first; o < end; o++ {
			if o != h {
				messages, bytes = add(messages, bytes, 1, g.held(o, b))
			}
		}
		return messages, bytes
	case schedule.RowResults:
		return add(0, 0, end-first-1, g.held(h, b))
	}
	lo, hi := g.Held(h)
	for s := lo; s < hi; s++ {
		switch own := s%g.Rows() == g.RowOf(h); {
		case own && what == schedule.ColumnResults:
			messages, bytes = add(messages, bytes, g.Rows()-1, b.slice(s))
		case !own && what == schedule.ColumnAddends:
			messages, bytes = add(messages, bytes, 1, b.slice(s))
		}
	}
	return messages, bytes
}

// add adds n messages of so many bytes each, if these are any.
func add(messages, bytes, n, each int) (int, int) {
	if each == 0 {
		return messages, bytes
	}
	return messages + n, bytes + n*each
}

// reduced is the bytes of slices that host h reduces to the end.
func (g *grid) reduced(h int, b bounded) (n int) {
	lo, hi := g.Held(h)
	for s := lo; s < hi; s++ {
		if s%g.Rows() == g.RowOf(h) {
			n += b.slice(s)
		}
	}
	return n
}

// incoming is how many bytes host h waits for in a step.
func (g *grid) incoming(h int, what schedule.What, b bounded) int {
	first, end := g.Row(g.RowOf(h))
	held := g.held(h, b)
	switch what {
	case schedule.RowAddends:
		return (end - first - 1) * held
	case schedule.RowResults:
		return b[g.Slices()] - held
	case schedule.ColumnAddends:
		return (g.Rows() - 1) * g.reduced(h, b)
	}
	return held - g.reduced(h, b)
}

// combined is how many bytes host h reads to combine.
func (g *grid) combined(h int, what schedule.What, b bounded) int {
	if what == schedule.RowAddends {
		first, end := g.Row(g.RowOf(h))
		return (end - first) * g.held(h, b)
	}
	return g.Rows() * g.reduced(h, b)
}
