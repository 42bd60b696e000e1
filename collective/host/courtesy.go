package host

import (
	"runtime"
	"time"
)

const (
	looks       = 300                  // before a sleep: some 100 µs, as long as waking takes where a processor has fallen asleep
	othersRun   = 2 * time.Millisecond // a turn of somebody who computes; of those that we wait for it is much shorter
	manyTurns   = time.Millisecond     // those of many that we wait for: enough for one wait
	fewestSleep = 8                    // waits that are sleeps after such a turn,
	mostSleep   = 1024                 // or after many
)

// courtesy lets others run while a rank looks for what it waits for, and finds out
// whether that pays. Who gives way to somebody who computes is not asked again for a
// whole turn of his, while who sleeps goes on as soon as it is woken. So after a long
// turn the next waits are sleeps, the more the more often that happens.
type courtesy struct {
	limit        time.Duration // of a turn that is not somebody's who computes
	goroutines   bool          // of this process may be whom it waits for, or have no other processor
	skip, sleeps int
}

// newCourtesy is that of a rank in such company.
func newCourtesy(here company) courtesy {
	return courtesy{
		limit:      othersRun * time.Duration(max(1, here.ranks/runtime.NumCPU())),
		goroutines: here.process || runtime.GOMAXPROCS(0) == 1,
	}
}

// until looks for a while, and says whether found has been true. If it was not, the
// rank should sleep.
func (c *courtesy) until(found func() bool) bool {
	if c.skip > 0 {
		c.skip--
		return found()
	}
	before := time.Now()
	for i := range looks {
		if found() {
			c.sleeps -= c.sleeps / 8
			return true
		}
		c.pause(i)
		now := time.Now()
		if turn := now.Sub(before); turn > c.limit {
			c.sleeps = min(max(2*c.sleeps, fewestSleep), mostSleep)
			c.skip = c.sleeps
			break
		} else if turn > manyTurns {
			break
		}
		before = now
	}
	return found()
}

// pause lets others run between two looks. Go's scheduler comes less often than the
// kernel's, and only where goroutines need it: one that is bound to its thread, as that
// of a backend is, pays it with two changes of threads (10 µs instead of 0.1), and what
// wakes threads that often may have a processor for itself (DESIGN.md, "Nobody wakes
// threads").
func (c *courtesy) pause(i int) {
	if c.goroutines && i%8 == 7 {
		runtime.Gosched()
	}
	yield()
}
