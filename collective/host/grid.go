package host

import (
	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// grid is the place of a host among many, whose leaders exchange in rows and columns.
type grid struct {
	schedule.Grid
	always bool // also vectors whose slices are thick
	host   int

	ranks    []int // of each host
	position []int // number of each rank in the order column by column

	// What follows is the leader's alone.

	row, up, down      []int // hosts that it meets in its row and in columns, in the order in which it sends to them
	upSlice, downSlice []int // by host: the slice for which it is met

	cuts    []int
	sources [][]byte
	tree    reduce.Scratch
}

// newGrid is the grid of the hosts of t, or, for tests, that of rows of width.
func newGrid(t topology, width int) grid {
	host, hosts := t.host, len(t.hosts)
	g := grid{Grid: schedule.GridOf(hosts), host: host}
	if width > 0 && hosts > width {
		g.Width, g.always = width, true
	}
	if g.Width == 0 {
		return g
	}
	g.place(t)
	lo, hi := g.Row(g.RowOf(host))
	for i := 1; i < hi-lo; i++ {
		g.row = append(g.row, lo+(host-lo+i)%(hi-lo))
	}
	g.upSlice, g.downSlice = make([]int, hosts), make([]int, hosts)
	for _, m := range g.Up(nil, host) {
		g.up, g.upSlice[m.Host] = append(g.up, m.Host), m.Slice
	}
	for _, m := range g.Down(nil, host) {
		g.down, g.downSlice[m.Host] = append(g.down, m.Host), m.Slice
	}
	return g
}

// place finds where the parts of ranks lie.
func (g *grid) place(t topology) {
	g.position = make([]int, t.size)
	at := 0
	for _, h := range g.Order(nil) {
		for _, r := range t.hosts[h] {
			g.position[r] = at
			at++
		}
	}
	for _, ranks := range t.hosts {
		g.ranks = append(g.ranks, len(ranks))
	}
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

// deal are the bounds of the slices of hosts, each of the parts of its ranks, of n elements.
func (g *grid) deal(n int) []int {
	g.cuts = g.Deal(g.cuts[:0], g.ranks, n)
	return g.cuts
}

// held are the elements of the slices that host h holds, slice those of one.
func (g *grid) held(h int) (lo, hi int) {
	from, to := g.Held(h)
	return g.cuts[from], g.cuts[to]
}
func (g *grid) slice(s int) (lo, hi int) { return g.cuts[s], g.cuts[s+1] }

// receivers are the hosts that this one sends What to, senders those that it gets it from.
func (m *mesh) receivers(what schedule.What) []int {
	switch what {
	case schedule.RowAddends, schedule.RowResults:
		return m.grid.row
	case schedule.ColumnAddends:
		return m.grid.up
	case schedule.ColumnResults:
		return m.grid.down
	}
	return m.others
}
func (m *mesh) senders(what schedule.What) []int {
	switch what {
	case schedule.RowAddends, schedule.RowResults:
		return m.grid.row
	case schedule.ColumnAddends:
		return m.grid.down
	case schedule.ColumnResults:
		return m.grid.up
	}
	return m.others
}

// outgoingInGrid is what this host sends to host o.
func (m *mesh) outgoingInGrid(what schedule.What, o int) []byte {
	g, x := m.grid, &m.exchange
	switch what {
	case schedule.RowAddends:
		return x.before(g.held(o))
	case schedule.ColumnAddends:
		return x.before(g.slice(g.upSlice[o]))
	case schedule.ColumnResults:
		return x.after(g.slice(g.downSlice[o]))
	}
	return x.after(g.held(m.host))
}

// incomingInGrid is where what host o sends will lie.
func (m *mesh) incomingInGrid(what schedule.What, o int) []byte {
	g, x := m.grid, &m.exchange
	switch what {
	case schedule.RowAddends:
		lo, hi := g.held(m.host)
		return m.scratch.buffer(o, (hi-lo)*x.wide)
	case schedule.ColumnAddends:
		lo, hi := g.slice(g.downSlice[o])
		return m.scratch.buffer(o, (hi-lo)*x.wide)
	case schedule.ColumnResults:
		return x.after(g.slice(g.upSlice[o]))
	}
	return x.after(g.held(o))
}

// combineRow adds up what the hosts of the row have of the slices that this one holds, where its own lies.
func (m *mesh) combineRow() {
	g, x, in := m.grid, &m.exchange, m.scratch.posted(schedule.RowAddends)
	own := x.before(g.held(m.host))
	g.sources = g.sources[:0]
	for h, end := g.Row(g.RowOf(m.host)); h < end; h++ {
		if h == m.host {
			g.sources = append(g.sources, own)
		} else {
			g.sources = append(g.sources, in[h])
		}
	}
	sum := x.job.Within()
	sum.Run(own, g.sources, &g.tree)
}

// combineColumns reduces the slices of this host's row that it holds to the end.
func (m *mesh) combineColumns() {
	g, x, in := m.grid, &m.exchange, m.scratch.posted(schedule.ColumnAddends)
	row := g.RowOf(m.host)
	for s, end := g.Held(m.host); s < end; s++ {
		lo, hi := g.slice(s)
		if s%g.Rows() != row || lo == hi {
			continue
		}
		g.sources = g.sources[:0]
		for r := range g.Rows() {
			if r == row {
				g.sources = append(g.sources, x.before(lo, hi))
			} else {
				g.sources = append(g.sources, in[g.Holder(r, s)])
			}
		}
		x.job.Run(x.after(lo, hi), g.sources, &g.tree)
	}
}
