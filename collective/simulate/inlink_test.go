package simulate

import (
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/schedule"
)

// TestInlink: what is to be carried takes the first free microseconds of the link from its
// begin on, whatever came before it was asked for. The reference has a place for each
// microsecond.
func TestInlink(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var l inlink
		var taken [400]bool
		for range 12 {
			begin, us := rng.IntN(100), rng.IntN(12)
			at := begin
			for left := us; left > 0; at++ {
				if !taken[at] {
					taken[at] = true
					left--
				}
			}
			if got := l.carry(float64(begin), float64(us)); got != float64(at) {
				t.Fatalf("%d us from %d on end at %v, want %d; the link is %v", us, begin, got, at, l)
			}
		}
	}
}

// TestInlinkForgets: of what was carried the last interval stays, which later messages have to
// wait for.
func TestInlinkForgets(t *testing.T) {
	var l inlink
	l.carry(0, 10)
	l.carry(50, 10)
	l.forget()
	if got := l.carry(55, 1); got != 61 {
		t.Errorf("what comes at 55, when the link is busy from 50 to 60, ends at %v, want 61", got)
	}
	if got := l.carry(0, 1); got != 1 {
		t.Errorf("what came at 0, which is forgotten, ends at %v, want 1", got)
	}
}

// TestWired: hosts of one machine whose messages go through its memory share its processors
// for that; those with links of their own do not.
func TestWired(t *testing.T) {
	for wired, want := range map[bool]float64{false: 2, true: 1} { // two hosts on one processor: all takes twice as long
		g := newGroup(Cluster{Ranks: Hosts(2, 1), Together: 2, Cores: 1, Wired: wired})
		if got := g.wire(0, prices{perByte: 1}); got != want {
			t.Errorf("wired %v: a byte that takes 1 us takes %v, want %v", wired, got, want)
		}
	}
}

// TestLinkStaysBusy: a collective finds the ways into hosts as the one before has left them.
func TestLinkStaysBusy(t *testing.T) {
	const busy, latency = 500.0, 10.0
	g := newGroup(Cluster{Ranks: Hosts(2, 1)})
	g.in[1].carry(0, busy)
	g.play(planKey{collective.Barrier, 0}, tariff{between: prices{latency: latency, perByte: 1}})
	if want := []float64{schedule.HeaderBytes + latency, busy + schedule.HeaderBytes + latency}; g.lead.clock[0] != want[0] || g.lead.clock[1] != want[1] {
		t.Errorf("a barrier of two hosts, into one of which the link is busy until %v, ends at %v, want %v", busy, g.lead.clock, want)
	}
}
