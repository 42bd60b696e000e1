package schedule

import "ebtrain/collective"

// Grid has leaders reduce in two stages, so that none sends each of many others a sliver: hosts
// stand in rows of Width, a power of two, in the order of their numbers. A chunk is cut
// into as many columns as a row has hosts, and a column into slices, one for each row. Those
// of a row first add up what they have of a column at the host that holds it, then the holders
// of a slice in all rows tell their sums to that in the slice's own row, who knows the result.
// Results go back by the same ways, to the holders and then round their rows. Of n hosts each
// sends some 4√n messages in place of 2n, and as many bytes. A reduce-scatter is the way there,
// an all-gather the way back: 2√n in place of n.
//
// The last row may be shorter. Its hosts hold more than a column each, all nearly as much, and
// send no more bytes, but more messages: of 1025 hosts the last is alone in its row, and
// sends a message to each other host, as it would without a grid.
//
// A row is an aligned block of 2ᵏ hosts, which the tree of package reduce sums up before
// it adds others, and the last row is the rest: so the bits are those of an exchange
// without a grid.
type Grid struct {
	Hosts int
	Width int // hosts of a row but the last; 0 for no grid
}

// thin is the size in bytes of a slice up to which hosts stand in a grid: that costs two
// more times of latency, and what a message costs is little beside that of more bytes. A
// reduce-scatter and an all-gather have half of either.
const thin = 32 << 10

// many is the number of hosts from which on they may stand in a grid.
const many = 24

// GridOf is the grid of so many hosts: that in which the busiest sends the fewest messages,
// if these are at most half of what it sends without one.
func GridOf(hosts int) Grid {
	if hosts < many {
		return Grid{Hosts: hosts}
	}
	best := Grid{Hosts: hosts}
	least := hosts - 1 // half of what is sent without a grid
	for w := 2; w < hosts; w *= 2 {
		g := Grid{hosts, w}
		if n := g.messages(); n <= least {
			best, least = g, n-1
		}
	}
	return best
}

// messages is how many the busiest host sends of a chunk of an all-reduce; of a
// reduce-scatter or an all-gather it is half of that.
func (g Grid) messages() int {
	rows := g.Rows()
	lo, hi := g.Row(rows - 1)
	most := 2*(g.Width-1) + 2*(rows-1)
	for h := lo; h < hi; h++ {
		most = max(most, 2*(hi-lo-1)+len(g.Up(nil, h))+len(g.Down(nil, h)))
	}
	return most
}

// Rows is their number.
func (g Grid) Rows() int { return (g.Hosts + g.Width - 1) / g.Width }

// RowOf is the row in which a host stands.
func (g Grid) RowOf(host int) int { return host / g.Width }

// Row is the hosts of a row, [lo, hi).
func (g Grid) Row(row int) (lo, hi int) {
	return row * g.Width, min((row+1)*g.Width, g.Hosts)
}

// Slices is their number. They are counted column by column: slice s is that of row s%Rows
// in column s/Rows.
func (g Grid) Slices() int { return g.Width * g.Rows() }

// Held are the slices that a host holds for its row, [lo, hi): but in a short row, a column.
func (g Grid) Held(host int) (lo, hi int) {
	from, to := g.Row(g.RowOf(host))
	n := to - from
	return g.Slices() * (host - from) / n, g.Slices() * (host - from + 1) / n
}

// Holder is the host of a row that holds a slice.
func (g Grid) Holder(row, slice int) int {
	lo, hi := g.Row(row)
	return lo + ((slice+1)*(hi-lo)-1)/g.Slices()
}

// Meeting is a host that another meets in a column, and the slice for which it does. No two
// meet for two slices of which the same one has the result.
type Meeting struct{ Host, Slice int }

// Up appends to whom a host sends addends in columns, and from whom it gets results: for each
// slice that it holds the holder in the slice's own row, beginning behind itself.
func (g Grid) Up(meets []Meeting, host int) []Meeting {
	lo, hi := g.Held(host)
	for i := range hi - lo {
		s := lo + (g.Home(host)-lo+1+i)%(hi-lo)
		if row := s % g.Rows(); row != g.RowOf(host) {
			meets = append(meets, Meeting{g.Holder(row, s), s})
		}
	}
	return meets
}

// Down appends from whom a host gets addends in columns, and to whom it sends results: for
// each slice of its row that it holds the holders in all other rows, beginning behind itself.
func (g Grid) Down(meets []Meeting, host int) []Meeting {
	row, rows := g.RowOf(host), g.Rows()
	lo, hi := g.Held(host)
	for s := lo; s < hi; s++ {
		for i := 1; i < rows && s%rows == row; i++ {
			r := (row + i) % rows
			meets = append(meets, Meeting{g.Holder(r, s), s})
		}
	}
	return meets
}

// Home is the last slice of its own row that a host holds, and but in a short row the only one.
func (g Grid) Home(host int) int {
	_, hi := g.Held(host)
	rows := g.Rows()
	return hi - 1 - (hi-1-g.RowOf(host))%rows
}

// Cuts appends the bounds of the slices of n elements: slice s is [cuts[s], cuts[s+1]).
func (g Grid) Cuts(cuts []int, n int) []int {
	rows := g.Rows()
	cuts = append(cuts, 0)
	for c := range g.Width {
		lo, hi := Share(n, g.Width, c)
		for r := range rows {
			_, end := Share(hi-lo, rows, r)
			cuts = append(cuts, lo+end)
		}
	}
	return cuts
}

// Worth says whether so many bytes are better exchanged in the grid.
func (g Grid) Worth(bytes int) bool {
	return g.Width > 0 && min(bytes, NetChunk(g.Hosts)) <= thin*g.Hosts
}

// Gridded says whether leaders exchange in rows and columns.
func (c Call) Gridded() bool {
	switch c.Kind {
	case collective.AllReduce, collective.ReduceScatter, collective.AllGather:
		return c.Width > 0 && !c.Doubled()
	}
	return false
}

// consent is that all leaders have started the same: in as many rounds as a barrier has,
// where without a grid each asks each.
func (c Call) consent(steps []Step) []Step {
	if c.Gridded() {
		return c.double(steps, 0)
	}
	return append(steps, Step{Do: Ask})
}

// inGrid exchanges a chunk in rows and columns. Its addends leave before the results of the
// last chunk are there, which began at last; less than 0 if there was none.
func (c Call) inGrid(steps []Step, lo, hi, last int) []Step {
	s := func(do Verb, what What) Step { return Step{Do: do, What: what, Lo: lo, Hi: hi} }
	steps = append(steps, s(Post, RowAddends), s(Send, RowAddends))
	if last >= 0 {
		steps = append(steps, Step{Do: Wait, What: RowResults, Lo: last, Hi: lo})
	}
	return append(steps, s(Post, ColumnAddends), s(Wait, RowAddends), s(Combine, RowAddends), s(Send, ColumnAddends),
		s(Post, ColumnResults), s(Wait, ColumnAddends), s(Combine, ColumnAddends), s(Send, ColumnResults),
		s(Post, RowResults), s(Wait, ColumnResults), s(Send, RowResults))
}

// inChunks exchanges a vector where it lies in rows and columns.
func (c Call) inChunks(steps []Step) []Step {
	chunk, last := NetChunk(c.Hosts), -1
	for at := 0; at < c.Bytes; at += chunk {
		steps = c.inGrid(steps, at, min(at+chunk, c.Bytes), last)
		last = at
	}
	return append(steps, Step{Do: Wait, What: RowResults, Lo: last, Hi: c.Bytes})
}
