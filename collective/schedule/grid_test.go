package schedule

import (
	"fmt"
	"testing"
)

// TestGrid: every row holds every slice once, at the holder; who sends a slice and who waits
// for it agree; nobody meets another twice for slices that the same one reduces, nor in its
// row; and the sum of rows of sums is the tree of all.
func TestGrid(t *testing.T) {
	for hosts := 1; hosts <= 140; hosts++ {
		for w := 2; w <= 64 && w <= hosts; w *= 2 {
			g := Grid{hosts, w}
			for r := range g.Rows() {
				at := 0
				for h, end := g.Row(r); h < end; h++ {
					lo, hi := g.Held(h)
					if lo != at || hi-lo < g.Rows() {
						t.Errorf("%v: host %d holds slices %d to %d, behind %d", g, h, lo, hi, at)
					}
					for at = lo; at < hi; at++ {
						if o := g.Holder(r, at); o != h {
							t.Errorf("%v: slice %d is held by %d, and its holder is %d", g, at, h, o)
						}
					}
				}
				if at != g.Slices() {
					t.Errorf("%v: row %d holds %d slices of %d", g, r, at, g.Slices())
				}
			}
			checkMeetings(t, g)
			if got, want := gridText(g, 0, g.Rows()), treeText(0, hosts); got != want {
				t.Errorf("%v sums up %s, want %s", g, got, want)
			}
		}
	}
}

func checkMeetings(t *testing.T, g Grid) {
	t.Helper()
	up, all := map[[2]int]int{}, 0 // from and to: slice
	for h := range g.Hosts {
		for _, m := range g.Up(nil, h) {
			if _, ok := up[[2]int{h, m.Host}]; ok || g.RowOf(h) == g.RowOf(m.Host) {
				t.Fatalf("%v: %d and %d meet twice", g, h, m.Host)
			}
			up[[2]int{h, m.Host}] = m.Slice
		}
	}
	for h := range g.Hosts {
		for _, m := range g.Down(nil, h) {
			if s, ok := up[[2]int{m.Host, h}]; !ok || s != m.Slice || s%g.Rows() != g.RowOf(h) {
				t.Fatalf("%v: %d waits for slice %d of %d, which sends it %d (%v)", g, h, m.Slice, m.Host, s, ok)
			}
			all++
		}
	}
	if want := g.Slices() * (g.Rows() - 1); all != want || len(up) != want {
		t.Fatalf("%v: %d slices are sent and %d waited for, want %d", g, len(up), all, want)
	}
}

// TestGridParts: the parts of every host are a slice that its row holds there, in their
// order, and no slice is more than that.
func TestGridParts(t *testing.T) {
	for hosts := 3; hosts <= 140; hosts++ {
		for w := 2; w < hosts; w *= 2 {
			g := Grid{hosts, w}
			ranks := make([]int, hosts)
			for h := range ranks {
				ranks[h] = 1 + h%5
			}
			const n = 7
			order, cuts := g.Order(nil), g.Deal(nil, ranks, n)
			if len(order) != hosts || len(cuts) != g.Slices()+1 {
				t.Fatalf("%v: %d hosts in order, and %d cuts", g, len(order), len(cuts))
			}
			seen, at := map[int]bool{}, 0
			for _, h := range order {
				s := g.Home(h)
				if seen[h] || g.Holder(g.RowOf(h), s) != h || s%g.Rows() != g.RowOf(h) || cuts[s] != at || cuts[s+1] != at+n*ranks[h] {
					t.Fatalf("%v: host %d has its parts in slice %d, [%d, %d), want %d from %d", g, h, s, cuts[s], cuts[s+1], n*ranks[h], at)
				}
				seen[h], at = true, cuts[s+1]
			}
			if cuts[len(cuts)-1] != at {
				t.Fatalf("%v: slices end at %d, parts at %d", g, cuts[len(cuts)-1], at)
			}
		}
	}
}

// TestGridBytes: what hosts send and receive beside what they do without a grid. Of a
// reduce-scatter they send as much, and of an all-gather they receive as much, whatever parts
// they have. The other way it is all parts of a column, once round the row: of hosts of as many
// ranks that is at most two rows more, and a third at worst. Of an all-reduce it is about as much.
func TestGridBytes(t *testing.T) {
	worst, most := 0.0, 0.0
	for hosts := many; hosts <= 1300; hosts += 1 + hosts/400*20 {
		g := GridOf(hosts)
		if g.Width == 0 {
			continue
		}
		one, some := make([]int, hosts), make([]int, hosts)
		for h := range one {
			one[h], some[h] = 1, 1+h*h%7
		}
		equal, uneven := g.Deal(nil, one, 1), g.Deal(nil, some, 1)
		all := g.Cuts(nil, 64*g.Slices()*4)
		for h := range hosts {
			if out, _ := g.reduced(h, equal); out != hosts-1 {
				t.Errorf("%v: host %d sends %d parts of a reduce-scatter, want %d", g, h, out, hosts-1)
			}
			if out, _ := g.reduced(h, uneven); out != uneven[g.Slices()]-some[h] {
				t.Errorf("%v: host %d sends %d parts of a reduce-scatter, want %d", g, h, out, uneven[g.Slices()]-some[h])
			}
			_, in := g.reduced(h, equal)
			if in >= g.Slices()+g.Width {
				t.Errorf("%v: host %d receives %d parts of a reduce-scatter, want less than %d", g, h, in, g.Slices()+g.Width)
			}
			worst = max(worst, float64(in)/float64(hosts-1))
			out, in := g.reduced(h, all)
			most = max(most, float64(out+in)*float64(hosts)/float64(2*(hosts-1)*all[g.Slices()]))
		}
	}
	if t.Logf("%.3f and %.3f times the bytes at worst", worst, most); worst > 1.34 || most > 1.1 {
		t.Errorf("%.3f times the bytes of a reduce-scatter, %.3f of an all-reduce", worst, most)
	}
}

// reduced is how many elements a host sends and receives until all slices are reduced. It
// receives and sends as many until all hosts know them.
func (g Grid) reduced(h int, cuts []int) (out, in int) {
	lo, hi := g.Held(h)
	first, end := g.Row(g.RowOf(h))
	held := cuts[hi] - cuts[lo]
	out, in = cuts[g.Slices()]-held, (end-first-1)*held
	if end-first == 1 {
		out = 0
	}
	for _, m := range g.Up(nil, h) {
		out += cuts[m.Slice+1] - cuts[m.Slice]
	}
	for _, m := range g.Down(nil, h) {
		in += cuts[m.Slice+1] - cuts[m.Slice]
	}
	return out, in
}

// gridText is the sum of rows lo to hi, each summed up before.
func gridText(g Grid, lo, hi int) string {
	if hi-lo == 1 {
		return treeText(g.Row(lo))
	}
	cut := lo + 1
	for 2*(cut-lo) < hi-lo {
		cut = lo + 2*(cut-lo)
	}
	return "(" + gridText(g, lo, cut) + "+" + gridText(g, cut, hi) + ")"
}

// TestGridOf: the numbers of messages that the busiest host sends, beside those without a grid.
func TestGridOf(t *testing.T) {
	for _, test := range []struct{ hosts, width, messages int }{
		{23, 0, 0}, {24, 4, 16}, {32, 4, 20}, {33, 0, 0}, {64, 8, 28}, {1000, 64, 156}, {1024, 32, 124}, {1025, 0, 0}, {1250, 64, 0},
	} {
		g := GridOf(test.hosts)
		if g.Width != test.width || g.Width > 0 && test.messages > 0 && g.messages() != test.messages {
			n := 0
			if g.Width > 0 {
				n = g.messages()
			}
			t.Errorf("%d hosts: rows of %d and %d messages, want %d and %d", test.hosts, g.Width, n, test.width, test.messages)
		}
	}
}

// TestGridCuts: slices follow each other and are all of the vector.
func TestGridCuts(t *testing.T) {
	for _, g := range []Grid{{16, 4}, {18, 4}, {7, 2}} {
		for _, n := range []int{1, 63, 64, 100, 4097, 1 << 19} {
			cuts := g.Cuts(nil, n)
			if len(cuts) != g.Width*g.Rows()+1 || cuts[0] != 0 || cuts[len(cuts)-1] != n {
				t.Fatalf("%v, %d elements: %d cuts from %d to %d", g, n, len(cuts), cuts[0], cuts[len(cuts)-1])
			}
			for i := range len(cuts) - 1 {
				if cuts[i] > cuts[i+1] {
					t.Errorf("%v, %d elements: %s", g, n, fmt.Sprint(cuts))
				}
			}
		}
	}
}
