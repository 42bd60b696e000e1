package simulate

import "ebtrain/collective/schedule"

// inColumns says whether leaders send to holders in other rows.
func inColumns(what schedule.What) bool {
	return what == schedule.ColumnAddends || what == schedule.ColumnResults
}

// short says whether the last row is.
func (g *grid) short() bool { return g.Width > 0 && g.Hosts%g.Width > 0 }

// lines is how many there are for what is sent.
func (g *group) lines(what schedule.What) int {
	switch {
	case what < schedule.RowAddends:
		return 1
	case inColumns(what):
		return g.grid.Width
	}
	return g.grid.Rows()
}

// lineOf is that of host h. Those of a short row are in no column: what they send there, and
// get, is not the same for all.
func (g *group) lineOf(h int, what schedule.What) (line int, ok bool) {
	if what < schedule.RowAddends {
		return 0, true
	}
	row := g.grid.RowOf(h)
	if !inColumns(what) {
		return row, true
	}
	if g.grid.short() && row == g.grid.Rows()-1 {
		return 0, false
	}
	lo, _ := g.grid.Held(h)
	return lo / g.grid.Rows(), true
}

// sendsIn says whether host h, which sends something, sends to its line.
func (g *group) sendsIn(h, line int, c schedule.Call, s schedule.Step) bool {
	if s.What != schedule.ColumnAddends || !g.grid.short() {
		return true
	}
	b, rows := g.grid.bounds(c, s), g.grid.Rows()
	for r := range rows - 1 {
		if r != g.grid.RowOf(h) && b.slice(line*rows+r) > 0 {
			return true
		}
	}
	return false
}

// apart are hosts of which h gets something beside what comes in its line: those of a short
// row, or, if it is one of them, all.
func (g *group) apart(h int, c schedule.Call, s schedule.Step) []int {
	g.others = g.others[:0]
	if !inColumns(s.What) || !g.grid.short() {
		return nil
	}
	b, last := g.grid.bounds(c, s), g.grid.Rows()-1
	meetings := g.grid.Down
	if s.What == schedule.ColumnResults {
		meetings = g.grid.Up
	}
	g.meetings = meetings(g.meetings[:0], h)
	for _, m := range g.meetings {
		if b.slice(m.Slice) > 0 && (g.grid.RowOf(h) == last || g.grid.RowOf(m.Host) == last) {
			g.others = append(g.others, m.Host)
		}
	}
	return g.others
}
