package host

import (
	"testing"
	"time"
)

// TestCourtesy: who gives way to somebody who computes sleeps the next times, longer
// each time, and again looks when others' turns have become short.
func TestCourtesy(t *testing.T) {
	c := courtesy{limit: -1} // every turn is a long one
	looked := 0
	for round, want := range []int{fewestSleep, 2 * fewestSleep, 4 * fewestSleep} {
		if looked = 0; c.until(func() bool { looked++; return false }) || looked != 2 {
			t.Errorf("round %d: it looked %d times, want once before and once after a turn of another", round, looked)
		}
		for i := range want {
			if looked = 0; c.until(func() bool { looked++; return false }) || looked != 1 {
				t.Fatalf("round %d: in wait %d of %d it looked %d times, want once", round, i, want, looked)
			}
		}
	}
	for range 2 * mostSleep {
		c.until(func() bool { return false })
	}
	if c.sleeps != mostSleep {
		t.Errorf("after many long turns %d waits are sleeps, want %d", c.sleeps, mostSleep)
	}
	for c.skip > 0 {
		c.until(func() bool { return false })
	}
	c.limit = time.Hour
	for range 1000 { // a wait in which a turn happens to take a millisecond proves nothing
		if looked = 0; c.until(func() bool { looked++; return looked == 5 }) && c.sleeps < mostSleep {
			break
		}
	}
	if looked != 5 || c.skip != 0 || c.sleeps >= mostSleep {
		t.Errorf("with short turns it looked %d times for what is there at the fifth look, and would skip %d waits, then %d", looked, c.skip, c.sleeps)
	}
}
