package supervise

import (
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/launch/rendezvous"
)

// Only data that arrive are a sign of life, not those that have arrived.
func TestSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s signs
		if s.lately("a") {
			t.Error("a sign of nobody")
		}
		s.begin([]rendezvous.NodeInfo{{Name: "a"}, {Name: "b"}})
		counts := []uint64{0, 0}
		count := func(node int) uint64 { return counts[node] }
		s.see(count, time.Now())
		if s.lately("a") || s.lately("b") {
			t.Error("a sign although nothing has arrived")
		}
		counts[1] = 7
		s.see(count, time.Now())
		if s.lately("a") || !s.lately("b") || s.lately("stranger") {
			t.Error("data of b have just arrived")
		}
		time.Sleep(freshSign - 1)
		if s.see(count, time.Now()); !s.lately("b") {
			t.Error("a fresh sign is not taken")
		}
		time.Sleep(time.Nanosecond)
		if s.see(count, time.Now()); s.lately("b") {
			t.Error("an old sign")
		}
		counts[1]++
		s.see(count, time.Now())
		s.begin([]rendezvous.NodeInfo{{Name: "a"}, {Name: "b"}})
		if s.lately("b") {
			t.Error("a sign of an epoch that is over")
		}
	})
}
