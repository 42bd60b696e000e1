package exec

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Ranks is the number of ranks that programs over c run on, and which of them
// this is; nil is a world of one.
func Ranks(c collective.Comm) (world, rank int) {
	if c == nil {
		return 1, 0
	}
	return c.Size(), c.Rank()
}

// CheckRanks reports a live op of g that is for another number of ranks than there
// are in c (see graph.RanksOf). Backends call it before they compile.
func CheckRanks(g *graph.Graph, c collective.Comm) error {
	world, _ := Ranks(c)
	for i, live := range g.Live() {
		n := g.Nodes()[i]
		if want := graph.RanksOf(n.Op); live && want != 0 && want != world {
			return fmt.Errorf("%s is for %d ranks, and there are %d: build the graph for as many", n.Op, want, world)
		}
	}
	return nil
}
