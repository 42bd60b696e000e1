package simulate

import "ebtrain/collective/schedule"

// grid is hosts in rows and columns: how many bytes they send there.
type grid struct {
	schedule.Grid
	cuts map[int][]int // by bytes of a chunk
}

// elem is the bytes of an element: vectors are of float32.
const elem = 4

// slice is the bytes of a row's slice of a column, which one host reduces to the end.
func (g *grid) slice(row, column, chunk int) int {
	cuts := g.bounds(chunk)
	at := column*g.Rows() + row
	return cuts[at+1] - cuts[at]
}

// columns is the bytes of some columns.
func (g *grid) columns(lo, hi, chunk int) int {
	cuts := g.bounds(chunk)
	return cuts[hi*g.Rows()] - cuts[lo*g.Rows()]
}

// bounds are those of slices in bytes.
func (g *grid) bounds(chunk int) []int {
	cuts, ok := g.cuts[chunk]
	if !ok {
		cuts = g.Cuts(nil, chunk/elem)
		for i := range cuts {
			cuts[i] *= elem
		}
		if g.cuts == nil {
			g.cuts = map[int][]int{}
		}
		g.cuts[chunk] = cuts
	}
	return cuts
}

// outgoing is what host h sends in s.
func (g *grid) outgoing(h int, s schedule.Step) (messages, bytes int) {
	chunk := s.Hi - s.Lo
	switch s.What {
	case schedule.RowAddends:
		for o, end := g.Row(g.RowOf(h)); o < end; o++ {
			if o == h {
				continue
			}
			lo, hi := g.Columns(o)
			messages, bytes = add(messages, bytes, 1, g.columns(lo, hi, chunk))
		}
	case schedule.RowResults:
		first, end := g.Row(g.RowOf(h))
		lo, hi := g.Columns(h)
		messages, bytes = add(0, 0, end-first-1, g.columns(lo, hi, chunk))
	case schedule.ColumnAddends, schedule.ColumnResults:
		for c, end := g.Columns(h); c < end; c++ {
			m, b := g.inColumn(h, c, s)
			messages, bytes = messages+m, bytes+b
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

// inColumn is what host h sends in a column that it holds.
func (g *grid) inColumn(h, column int, s schedule.Step) (messages, bytes int) {
	chunk, row := s.Hi-s.Lo, g.RowOf(h)
	if s.What == schedule.ColumnResults {
		return add(0, 0, g.Rows()-1, g.slice(row, column, chunk))
	}
	for r := range g.Rows() {
		if r != row {
			messages, bytes = add(messages, bytes, 1, g.slice(r, column, chunk))
		}
	}
	return messages, bytes
}

// incoming is how many bytes host h waits for in s.
func (g *grid) incoming(h int, s schedule.Step) int {
	chunk, row := s.Hi-s.Lo, g.RowOf(h)
	lo, hi := g.Columns(h)
	own := g.columns(lo, hi, chunk)
	switch s.What {
	case schedule.RowAddends:
		first, end := g.Row(row)
		return (end - first - 1) * own
	case schedule.RowResults:
		if first, end := g.Row(row); end-first == 1 {
			return 0
		}
		return chunk - own
	}
	reduced := 0
	for c := lo; c < hi; c++ {
		reduced += g.slice(row, c, chunk)
	}
	if s.What == schedule.ColumnAddends {
		return (g.Rows() - 1) * reduced
	}
	return own - reduced
}

// combined is how many bytes host h reads to combine.
func (g *grid) combined(h int, s schedule.Step) int {
	chunk, row := s.Hi-s.Lo, g.RowOf(h)
	lo, hi := g.Columns(h)
	if s.What == schedule.RowAddends {
		first, end := g.Row(row)
		return (end - first) * g.columns(lo, hi, chunk)
	}
	n := 0
	for c := lo; c < hi; c++ {
		n += g.Rows() * g.slice(row, c, chunk)
	}
	return n
}

// lines is how many there are for what is sent, linesOf those of host h, [lo, hi).
func (g *group) lines(what schedule.What) int {
	switch what {
	case schedule.RowAddends, schedule.RowResults:
		return g.grid.Rows()
	case schedule.ColumnAddends, schedule.ColumnResults:
		return g.grid.Width
	}
	return 1
}

func (g *group) linesOf(h int, what schedule.What) (lo, hi int) {
	switch what {
	case schedule.RowAddends, schedule.RowResults:
		row := g.grid.RowOf(h)
		return row, row + 1
	case schedule.ColumnAddends, schedule.ColumnResults:
		return g.grid.Columns(h)
	}
	return 0, 1
}

// sendsIn says whether host h, which sends something, does so in a line of its own.
func (g *group) sendsIn(h, line int, s schedule.Step) bool {
	if s.What != schedule.ColumnAddends && s.What != schedule.ColumnResults {
		return true
	}
	n, _ := g.grid.inColumn(h, line, s)
	return n > 0
}
