package host

import (
	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// grid is the place of a leader among many, who exchange in rows and columns.
type grid struct {
	schedule.Grid
	always bool // also vectors whose slices are thick
	host   int

	row, column []int // hosts that it meets in its row and in its columns, in the order in which it sends to them
	shared      []int // by host: the column in which they meet

	cuts    []int
	sources [][]byte
	tree    reduce.Scratch
}

// newGrid is the grid of so many hosts, or, for tests, that of rows of width.
func newGrid(host, hosts, width int) grid {
	g := grid{Grid: schedule.GridOf(hosts), host: host}
	if width > 0 && hosts > width {
		g.Width, g.always = width, true
	}
	if g.Width == 0 {
		return g
	}
	lo, hi := g.Row(g.RowOf(host))
	for i := 1; i < hi-lo; i++ {
		g.row = append(g.row, lo+(host-lo+i)%(hi-lo))
	}
	g.shared = make([]int, hosts)
	for c, end := g.Columns(host); c < end; c++ {
		for i := 1; i < g.Rows(); i++ {
			o := g.Holder((g.RowOf(host)+i)%g.Rows(), c)
			g.column, g.shared[o] = append(g.column, o), c
		}
	}
	return g
}

// widthFor is that of the rows in which so many bytes are exchanged, 0 for none.
func (g *grid) widthFor(bytes int) int {
	if g.always || g.Worth(bytes) {
		return g.Width
	}
	return 0
}

// cut are the bounds of the slices of n elements.
func (g *grid) cut(n int) []int {
	g.cuts = g.Cuts(g.cuts[:0], n)
	return g.cuts
}

// held are the elements of the columns of host h, slice those of a row in a column.
func (g *grid) held(h int) (lo, hi int) {
	from, to := g.Columns(h)
	return g.cuts[from*g.Rows()], g.cuts[to*g.Rows()]
}
func (g *grid) slice(row, column int) (lo, hi int) {
	at := column*g.Rows() + row
	return g.cuts[at], g.cuts[at+1]
}

// meets are the hosts that this one sends What to, and gets it from.
func (m *mesh) meets(what schedule.What) []int {
	switch what {
	case schedule.RowAddends, schedule.RowResults:
		return m.grid.row
	case schedule.ColumnAddends, schedule.ColumnResults:
		return m.grid.column
	}
	return m.others
}

// outgoingInGrid is what this host sends to host o.
func (m *mesh) outgoingInGrid(what schedule.What, o int) []byte {
	g, x := &m.grid, &m.exchange
	switch what {
	case schedule.RowAddends:
		return x.before(g.held(o))
	case schedule.ColumnAddends:
		return x.before(g.slice(g.RowOf(o), g.shared[o]))
	case schedule.ColumnResults:
		return x.after(g.slice(g.RowOf(m.host), g.shared[o]))
	}
	return x.after(g.held(m.host))
}

// incomingInGrid is where what host o sends will lie.
func (m *mesh) incomingInGrid(what schedule.What, o int) []byte {
	g, x := &m.grid, &m.exchange
	switch what {
	case schedule.RowAddends:
		lo, hi := g.held(m.host)
		return m.scratch.buffer(o, (hi-lo)*x.wide)
	case schedule.ColumnAddends:
		lo, hi := g.slice(g.RowOf(m.host), g.shared[o])
		return m.scratch.buffer(o, (hi-lo)*x.wide)
	case schedule.ColumnResults:
		return x.after(g.slice(g.RowOf(o), g.shared[o]))
	}
	return x.after(g.held(o))
}

// combineRow adds up what the hosts of the row have of this one's columns, where its own lies.
func (m *mesh) combineRow() {
	g, x, in := &m.grid, &m.exchange, m.scratch.posted(schedule.RowAddends)
	own := x.before(g.held(m.host))
	g.sources = g.sources[:0]
	for h, end := g.Row(g.RowOf(m.host)); h < end; h++ {
		if h == m.host {
			g.sources = append(g.sources, own)
		} else {
			g.sources = append(g.sources, in[h])
		}
	}
	sum := reduce.Job{From: x.job.From, To: x.job.From, Op: x.job.Op}
	sum.Run(own, g.sources, &g.tree)
}

// combineColumns reduces this host's slice of each of its columns to the end.
func (m *mesh) combineColumns() {
	g, x, in := &m.grid, &m.exchange, m.scratch.posted(schedule.ColumnAddends)
	row := g.RowOf(m.host)
	for c, end := g.Columns(m.host); c < end; c++ {
		lo, hi := g.slice(row, c)
		if lo == hi {
			continue
		}
		g.sources = g.sources[:0]
		for r := range g.Rows() {
			if r == row {
				g.sources = append(g.sources, x.before(lo, hi))
			} else {
				g.sources = append(g.sources, in[g.Holder(r, c)])
			}
		}
		x.job.Run(x.after(lo, hi), g.sources, &g.tree)
	}
}
