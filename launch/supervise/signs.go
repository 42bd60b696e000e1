package supervise

import (
	"sync"
	"time"

	"ebtrain/launch/rendezvous"
)

// freshSign is how old a sign of life may be. They are looked for every
// lookInterval.
const freshSign = 400 * time.Millisecond

// signs are the signs of life of all nodes that the ranks of this one see: data
// that arrive. Its methods may be called from any goroutine.
type signs struct {
	mu    sync.Mutex
	nodes []nodeSign
}

type nodeSign struct {
	name  string // of the launcher
	count uint64 // how often data have arrived
	at    time.Time
}

// begin begins an epoch.
func (s *signs) begin(nodes []rendezvous.NodeInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = nil
	for _, n := range nodes {
		s.nodes = append(s.nodes, nodeSign{name: n.Name})
	}
}

// see takes, at time now, how often data have arrived from each node.
func (s *signs) see(count func(node int) uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.nodes {
		if n := count(i); n != s.nodes[i].count {
			s.nodes[i].count, s.nodes[i].at = n, now
		}
	}
}

// lately says whether data of the node of the launcher called name have arrived
// a moment ago.
func (s *signs) lately(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		if n.name == name {
			return !n.at.IsZero() && time.Since(n.at) < freshSign
		}
	}
	return false
}

// watchNodes reads from the pages of all ranks what has arrived.
func (a *agent) watchNodes(now time.Time) {
	if a.cfg.Transport == nil {
		return
	}
	a.signs.see(func(node int) (sum uint64) {
		for _, p := range a.procs {
			if p != nil {
				sum += p.page.HeardFrom(node)
			}
		}
		return sum
	}, now)
}
