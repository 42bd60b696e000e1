package host

import (
	"log/slog"
	"sync/atomic"
	"unsafe"
)

// An arena is the memory through which the ranks of a host meet: a barrier, a
// slot for each rank, the record of an abort, and areas for data. Its layout:
//
//	control | slots | stage 0 | stage 1 | … | partial | result 0 | result 1
//
// Every stage has two halves, used in turn: a rank that fills a half has
// passed the barrier after which nobody reads what was in it. The results are
// two for the same reason. With one host nobody touches the last three.
type arena struct {
	seg   *segment // one part
	ctl   *control
	local int // this rank's number
	ranks int
	chunk int // bytes of one half stage
	spins int // loads before a waiter yields

	courtesy courtesy // of this rank
	seat     seat     // of this rank
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

// slot is what one rank tells the others of its host. What they read of every
// collective (cells) and what they read only to name a difference (labels) lie
// in cache lines of their own.
type slot struct {
	left    atomic.Uint32 // 1 when the rank has closed its Comm
	came    atomic.Uint32 // headers that the rank has shown
	sitting sitting
	_       [48]byte
	cell    [2]cell // used in turn
	label   [2]label
}

type cell struct {
	localHeader
	_ [64 - unsafe.Sizeof(localHeader{})]byte
}

const slotsAt = 2 * pageSize

// sizes of the areas of an arena.
func slotBytes() int          { return roundUp(int(unsafe.Sizeof(slot{})), 64) }
func stagesAt(ranks int) int  { return roundUp(slotsAt+ranks*slotBytes(), pageSize) }
func partialAt(r, c int) int  { return stagesAt(r) + r*2*c }
func resultsAt(r, c int) int  { return partialAt(r, c) + 2*c } // partials of BF16 are F32
func arenaBytes(r, c int) int { return resultsAt(r, c) + 2*c }

func newArena(seg *segment, local, ranks, chunk, spins int, c courtesy, log *slog.Logger) *arena {
	return &arena{seg: seg, local: local, ranks: ranks, chunk: chunk, spins: spins, courtesy: c, seat: seat{log: log},
		ctl: (*control)(unsafe.Pointer(unsafe.SliceData(seg.mem)))}
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

// wordAt is the word at the begin of memory that is aligned for it.
func wordAt(mem []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(mem)))
}
