package host

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// An arena is the memory through which the ranks of a host meet: a barrier, a
// slot for each rank, the record of an abort, and areas for data. Its layout:
//
//	control | slots | stage 0 | stage 1 | … | partial | result 0 | result 1
//
// Every stage has two halves, used in turn: a rank that fills a half has
// passed the barrier after which nobody reads what was in it. The results are
// two for the same reason. The last three exist with several hosts only.
type arena struct {
	seg   *segment // one part
	ctl   *control
	ranks int
	chunk int // bytes of one half stage
	spins int // loads before a waiter yields
}

// control is the head of an arena. Words that different ranks write lie in
// cache lines of their own.
type control struct {
	gen      atomic.Uint32 // bit 0: aborted; the others count barriers
	_        [60]byte
	arrived  atomic.Uint32 // ranks that are in the barrier
	_        [60]byte
	sleepers atomic.Uint32 // ranks that (may) sleep on gen; too high is harmless
	_        [60]byte
	claimed  atomic.Uint32 // 1 as soon as a rank writes the record
	ready    atomic.Uint32 // bytes of the record, when it is written
	record   [maxRecord]byte
}

// slot is what one rank tells the others of its host.
type slot struct {
	left   atomic.Uint32 // 1 when the rank has closed its Comm
	_      [60]byte
	header [2]localHeader // of collectives with even and odd numbers
}

const (
	slotsAt  = 2 * pageSize
	yields   = 32                    // calls to the scheduler before a waiter sleeps
	napLimit = 50 * time.Millisecond // a sleeper looks around this often
)

// sizes of the areas of an arena.
func slotBytes() int          { return roundUp(int(unsafe.Sizeof(slot{})), 64) }
func stagesAt(ranks int) int  { return roundUp(slotsAt+ranks*slotBytes(), pageSize) }
func partialAt(r, c int) int  { return stagesAt(r) + r*2*c }
func resultsAt(r, c int) int  { return partialAt(r, c) + 2*c } // partials of BF16 are F32
func arenaBytes(r, c int) int { return resultsAt(r, c) + 2*c }

func newArena(seg *segment, ranks, chunk int) *arena {
	a := &arena{seg: seg, ranks: ranks, chunk: chunk}
	a.ctl = (*control)(unsafe.Pointer(unsafe.SliceData(seg.mem)))
	if runtime.NumCPU() >= ranks {
		a.spins = 2000
	}
	return a
}

func (a *arena) slot(l int) *slot {
	return (*slot)(unsafe.Pointer(&a.seg.mem[slotsAt+l*slotBytes()]))
}

// stage is half of the stage of local rank l.
func (a *arena) stage(l int, half uint64) []byte {
	at := stagesAt(a.ranks) + (2*l+int(half&1))*a.chunk
	return a.seg.mem[at : at+a.chunk]
}

func (a *arena) partial() []byte {
	at := partialAt(a.ranks, a.chunk)
	return a.seg.mem[at : at+2*a.chunk]
}

func (a *arena) result(half uint64) []byte {
	at := resultsAt(a.ranks, a.chunk) + int(half&1)*a.chunk
	return a.seg.mem[at : at+a.chunk]
}

// outcome is how a wait for the other ranks ended.
type outcome int

const (
	passed outcome = iota
	aborted
	deserted // a rank has closed its Comm instead of coming
)

// barrier waits until every rank has called it. All ranks pass or none does:
// passing is one compare-and-swap of gen, and an abort makes it fail.
// When deserted, the rank returned is the one that left.
func (a *arena) barrier() (outcome, int) {
	gen := a.ctl.gen.Load()
	if gen&1 != 0 {
		return aborted, -1
	}
	if a.ranks == 1 {
		return passed, -1
	}
	return a.arrive(gen)
}

// arrive is barrier after gen was read.
func (a *arena) arrive(gen uint32) (outcome, int) {
	if a.ctl.arrived.Add(1) < uint32(a.ranks) {
		return a.await(gen)
	}
	a.ctl.arrived.Store(0)
	if !a.ctl.gen.CompareAndSwap(gen, gen+2) {
		return aborted, -1
	}
	if a.ctl.sleepers.Load() != 0 {
		wakeAll(&a.ctl.gen)
	}
	return passed, -1
}

// await waits until gen changes: first spinning, then yielding, then asleep.
func (a *arena) await(gen uint32) (outcome, int) {
	for range a.spins {
		if now := a.ctl.gen.Load(); now != gen {
			return verdict(gen, now)
		}
	}
	for range yields {
		if now := a.ctl.gen.Load(); now != gen {
			return verdict(gen, now)
		}
		runtime.Gosched()
		yield()
	}
	for {
		left := a.whoLeft()
		if now := a.ctl.gen.Load(); now != gen {
			return verdict(gen, now)
		}
		if left >= 0 { // it left before the barrier was complete
			return deserted, left
		}
		a.ctl.sleepers.Add(1)
		sleep(&a.ctl.gen, gen, napLimit)
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

// leave says that rank l will not come to any barrier again.
func (a *arena) leave(l int) {
	a.slot(l).left.Store(1)
	wakeAll(&a.ctl.gen)
}

// abort makes the barrier under way and all later ones fail. The first record
// is kept.
func (a *arena) abort(r record) {
	if a.ctl.claimed.CompareAndSwap(0, 1) {
		n := copy(a.ctl.record[:], r.encode())
		a.ctl.ready.Store(uint32(n))
	}
	a.ctl.gen.Or(1)
	wakeAll(&a.ctl.gen)
}

// why is the record of the abort, if there is one and it is complete.
func (a *arena) why() (record, bool) {
	n := a.ctl.ready.Load()
	if n == 0 || n > maxRecord {
		return record{}, false
	}
	r, err := decodeRecord(a.ctl.record[:n])
	return r, err == nil
}
