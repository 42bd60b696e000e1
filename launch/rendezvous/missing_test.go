package rendezvous

import (
	"testing"
	"time"
)

// TestMissing: hosts that have not come are named, and else numbers of nodes: those that asked for
// none fill the gaps from the front.
func TestMissing(t *testing.T) {
	for want, c := range map[string]struct {
		cfg   CoordinatorConfig
		nodes []NodeInfo
	}{
		"3 of 4 nodes joined within 1s (n1, n1.x, n2); missing: n3": {
			CoordinatorConfig{Nodes: 4, Hosts: []string{"n3", "n1", "n1", "n2.x"}},
			[]NodeInfo{{Host: "n2"}, {Host: "n1.x"}, {Host: "n1"}},
		},
		"2 of 4 nodes joined within 1s (n1 2 times); missing: n1, n2": {
			CoordinatorConfig{Nodes: 4, Hosts: []string{"n1", "n1", "n1", "n2"}},
			[]NodeInfo{{Host: "n1"}, {Host: "n1"}},
		},
		"4 of 6 nodes joined within 1s (n1, n2 3 times); missing: nodes 4-5": {
			CoordinatorConfig{Nodes: 6, Self: "a"},
			[]NodeInfo{{Name: "b", Host: "n2", Want: -1}, {Name: "a", Host: "n1", Want: -1}, {Name: "c", Host: "n2", Want: -1}, {Name: "d", Host: "n2", Want: -1}},
		},
		"3 of 7 nodes joined within 1s (n1, n2, n3); missing: node 2, nodes 4-6": {
			CoordinatorConfig{Nodes: 7, Self: "a"},
			[]NodeInfo{{Name: "a", Host: "n1"}, {Name: "b", Host: "n2", Want: 3}, {Name: "c", Host: "n3", Want: -1}},
		},
		"2 of 3 nodes joined within 1s (n1, n2); missing: node 2": { // one of them is node 0
			CoordinatorConfig{Nodes: 3},
			[]NodeInfo{{Name: "a", Host: "n1", Want: -1}, {Name: "b", Host: "n2", Want: -1}},
		},
		"0 of 2 to 3 nodes joined within 1s; missing: nodes 1-2": {CoordinatorConfig{Nodes: 3, Least: 2}, nil},
	} {
		coord := NewCoordinator(c.cfg)
		coord.nodes = c.nodes
		if got := coord.missing(time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
