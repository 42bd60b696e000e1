package schedule

import (
	"fmt"
	"testing"
)

// TestGrid: every row holds every column once; who sends a slice and who waits for it
// agree; nobody meets another in a row and in a column, or in two columns; and the sum of
// rows of sums is the tree of all.
func TestGrid(t *testing.T) {
	for hosts := 1; hosts <= 140; hosts++ {
		for w := 2; w <= 64; w *= 2 {
			g := Grid{hosts, w}
			held := map[[2]int]int{} // row, column: host
			for h := range hosts {
				lo, hi := g.Columns(h)
				if lo >= hi && hosts >= w {
					t.Errorf("%v: host %d holds no column", g, h)
				}
				for c := lo; c < hi; c++ {
					if o, ok := held[[2]int{g.RowOf(h), c}]; ok {
						t.Errorf("%v: column %d is held by %d and %d", g, c, o, h)
					}
					held[[2]int{g.RowOf(h), c}] = h
				}
			}
			for r := range g.Rows() {
				for c := range w {
					if h, ok := held[[2]int{r, c}]; !ok || h != g.Holder(r, c) {
						t.Errorf("%v: column %d of row %d is held by %d (%v), and its holder is %d", g, c, r, h, ok, g.Holder(r, c))
					}
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
	for c := range g.Width {
		for r := range g.Rows() {
			for q := range r {
				a, b := g.Holder(r, c), g.Holder(q, c)
				for d := range c {
					if g.Holder(r, d) == a && g.Holder(q, d) == b {
						t.Fatalf("%v: %d and %d meet in columns %d and %d", g, a, b, c, d)
					}
				}
			}
		}
	}
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
