package host

import "time"

const (
	spins    = 2000                  // loads before a waiter yields, if there are processors for all
	napLimit = 50 * time.Millisecond // a sleeper looks around this often,
	shortNap = 5 * time.Millisecond  // or this often if its context may end
)

// outcome is how a wait for the other ranks ended.
type outcome int

const (
	passed outcome = iota
	aborted
	deserted    // a rank has closed its Comm instead of coming
	interrupted // the caller's patience has ended; the wait may go on
	waiting     // not ended
)

// gate is a barrier that a rank has entered: the word as it was, and whether
// there is anything left to wait for.
type gate struct {
	gen   uint32
	state outcome // passed, aborted or waiting
}

// enter is the first half of a barrier, in which nobody waits: the rank counts
// as one that has come. It must await the gate before it enters another. All
// ranks pass or none does: passing is one compare-and-swap of gen, and an abort
// makes it fail.
func (a *arena) enter() gate {
	gen := a.ctl.gen.Load()
	if gen&1 != 0 {
		return gate{gen, aborted}
	}
	if a.ranks == 1 {
		return gate{gen, passed}
	}
	return a.arrive(gen)
}

// arrive is enter after gen was read.
func (a *arena) arrive(gen uint32) gate {
	if a.ctl.arrived.Add(1) < uint32(a.ranks) {
		return gate{gen, waiting}
	}
	a.ctl.arrived.Store(0)
	if !a.ctl.gen.CompareAndSwap(gen, gen+2) {
		return gate{gen, aborted}
	}
	if a.ctl.sleepers.Load() != 0 {
		wakeAll(&a.ctl.gen)
	}
	return gate{gen, passed}
}

// await is the second half of a barrier: it waits until gen changes, first
// spinning, then yielding, then asleep. When deserted, the rank returned is the
// one that left. If quit is closed before, it returns interrupted soon after,
// and may be called again.
func (a *arena) await(g gate, quit <-chan struct{}) (outcome, int) {
	if g.state != waiting {
		return g.state, -1
	}
	for range a.spins {
		if now := a.ctl.gen.Load(); now != g.gen {
			a.seat.quick++
			return verdict(g.gen, now)
		}
	}
	crowded := a.spins == 0 // ranks must share processors
	cpu := -1
	if !crowded {
		cpu = a.sit(g.gen >> 1)
	}
	if a.courtesy.until(func() bool { return a.ctl.gen.Load() != g.gen }) {
		if !crowded {
			a.stand(g.gen>>1, cpu)
		}
		return verdict(g.gen, a.ctl.gen.Load())
	}
	return a.doze(g, quit)
}

// doze is await asleep.
func (a *arena) doze(g gate, quit <-chan struct{}) (outcome, int) {
	nap := napLimit
	if quit != nil {
		nap = shortNap
	}
	for {
		left := a.whoLeft()
		if now := a.ctl.gen.Load(); now != g.gen {
			return verdict(g.gen, now)
		}
		if left >= 0 { // it left before the barrier was complete
			return deserted, left
		}
		select {
		case <-quit:
			return interrupted, -1
		default:
		}
		a.ctl.sleepers.Add(1)
		sleep(&a.ctl.gen, g.gen, nap)
		a.ctl.sleepers.Add(^uint32(0))
	}
}

// verdict says what a change of gen means to a rank in the barrier.
func verdict(before, now uint32) (outcome, int) {
	if now>>1 != before>>1 {
		return passed, -1
	}
	return aborted, -1
}

// whoLeft is a rank that has closed its Comm, or -1.
func (a *arena) whoLeft() int {
	for l := range a.ranks {
		if a.slot(l).left.Load() != 0 {
			return l
		}
	}
	return -1
}
