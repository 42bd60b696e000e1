package schedule

// A reduce-scatter and an all-gather cut what they exchange by ranks: a host has the parts
// of its own, which nobody else needs of the one, or which it alone has of the other. In a
// grid they are a slice of its row and of the column that it holds, so that parts lie column by
// column, and what those of a row add up, or tell each other, is one message. In a short
// row they are one of the slices that a host holds, and the others are empty.

// Owner is the host whose parts are a slice, if that is not empty.
func (g Grid) Owner(slice int) (host int, ok bool) {
	h := g.Holder(slice%g.Rows(), slice)
	return h, g.Home(h) == slice
}

// Order appends the hosts as their parts lie.
func (g Grid) Order(hosts []int) []int {
	for s := range g.Slices() {
		if h, ok := g.Owner(s); ok {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Deal appends the bounds of slices as Cuts does, where a host has the parts of so many
// ranks, of n elements each.
func (g Grid) Deal(cuts, ranks []int, n int) []int {
	cuts = append(cuts, 0)
	at := 0
	for s := range g.Slices() {
		if h, ok := g.Owner(s); ok {
			at += ranks[h] * n
		}
		cuts = append(cuts, at)
	}
	return cuts
}

// scatter reduces a chunk of every part in rows, and then in columns.
func (c Call) scatter(steps []Step, lo, hi int) []Step {
	s := func(do Verb, what What) Step { return Step{Do: do, What: what, Lo: lo, Hi: hi} }
	return append(steps, s(Post, RowAddends), s(Send, RowAddends), s(Post, ColumnAddends), s(Wait, RowAddends),
		s(Combine, RowAddends), s(Send, ColumnAddends), s(Wait, ColumnAddends), s(Combine, ColumnAddends))
}

// gather tells a chunk of every part in columns, and then what is known of these in rows.
func (c Call) gather(steps []Step, lo, hi int) []Step {
	s := func(do Verb, what What) Step { return Step{Do: do, What: what, Lo: lo, Hi: hi} }
	return append(steps, s(Post, ColumnResults), s(Send, ColumnResults), s(Post, RowResults), s(Wait, ColumnResults),
		s(Send, RowResults), s(Wait, RowResults))
}
