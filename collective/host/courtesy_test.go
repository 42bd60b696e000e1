package host

import (
	"runtime"
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

// TestCompany: beside a rank run those of its host and of hosts at its address, some of
// them perhaps in its process; only then, or with one processor for goroutines, does it
// give way to goroutines.
func TestCompany(t *testing.T) {
	const one, other = "10.0.0.1:5", "10.0.0.2:5"
	for name, c := range map[string]struct {
		hosts []string
		cards []card // as seen by rank 0
		want  company
	}{
		"alone":                       {[]string{"a", "b"}, []card{{Net: one, Process: 7}, {Net: other, Process: 8}}, company{ranks: 1}},
		"another machine's 7":         {[]string{"a", "b"}, []card{{Net: one, Process: 7}, {Net: other, Process: 7}}, company{ranks: 1}},
		"processes of a host":         {[]string{"a", "a"}, []card{{Process: 7}, {Process: 8}}, company{ranks: 2}},
		"goroutines of a process":     {[]string{"a", "a", "a"}, []card{{Process: 7}, {Process: 8}, {Process: 7}}, company{ranks: 3, process: true}},
		"hosts at an address":         {[]string{"a", "b", "c"}, []card{{Net: one, Process: 7}, {Net: one, Process: 8}, {Net: other}}, company{ranks: 2}},
		"hosts of the same process":   {[]string{"a", "b"}, []card{{Net: one, Process: 7}, {Net: one, Process: 7}}, company{ranks: 2, process: true}},
		"processes, and another host": {[]string{"a", "b", "a"}, []card{{Net: one, Process: 7}, {Net: other, Process: 7}, {Process: 9}}, company{ranks: 2}},
	} {
		got := companyOf(newTopology(0, c.hosts), c.cards)
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if gives, want := newCourtesy(got).goroutines, c.want.process || runtime.GOMAXPROCS(0) == 1; gives != want {
			t.Errorf("%s: gives way to goroutines: %t, want %t", name, gives, want)
		}
	}
}
