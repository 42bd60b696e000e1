package host

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	fewestShared = 8       // waits in a row on a processor that another rank shares, before a rank leaves it;
	mostShared   = 1 << 16 // or so many, if leaving has not helped
	calm         = 1000    // waits that were over at once since it left: it has helped
	lately       = 2       // barriers: who waits in turn on one processor gives way in every second
)

// seat is the processor on which a rank waits. Two that wait for each other on one
// processor hand it over with every barrier, which takes ten times as long as a barrier
// between two, and the kernel may leave it at that while other processors idle: it sees
// that one processor is busy and that neither rank has been off it for long. So a rank
// that finds itself there with another steps aside. Only its thread moves, only now:
// what the thread may run on stays as it was.
type seat struct {
	log *slog.Logger

	shared int  // waits in a row that ended when another rank had run here
	quick  int  // waits that were over at once since this rank last moved
	need   int  // waits in a row before it moves
	fixed  bool // it cannot move

	mask, one unix.CPUSet // of stepAside, which so allocates nothing
}

// due counts a wait, and says whether to move.
func (s *seat) due(shared bool) bool {
	if !shared {
		s.shared = 0
		return false
	}
	s.need = max(s.need, fewestShared)
	if s.shared++; s.shared < s.need {
		return false
	}
	s.need = min(4*s.need, mostShared)
	if s.quick >= calm {
		s.need = fewestShared
	}
	s.shared, s.quick = 0, 0
	return true
}

// A sitting is the barrier in which a rank has last given way, and the processor.
type sitting struct{ word atomic.Uint64 }

func (s *sitting) set(barrier uint32, cpu int) {
	s.word.Store(uint64(barrier)<<32 | uint64(uint32(cpu+1)))
}

// get is -1 for the processor of who has never given way.
func (s *sitting) get() (barrier uint32, cpu int) {
	w := s.word.Load()
	return uint32(w >> 32), int(uint32(w)) - 1
}

// sit tells the others where this rank is about to give way.
func (a *arena) sit(barrier uint32) (cpu int) {
	cpu = processor()
	a.slot(a.local).sitting.set(barrier, cpu)
	return cpu
}

// stand comes after sit, when another rank has come.
func (a *arena) stand(barrier uint32, cpu int) {
	if a.seat.fixed || !a.seat.due(a.sharesSeat(barrier, cpu)) {
		return
	}
	if err := a.stepAside(cpu); err != nil {
		a.seat.fixed = true
		a.seat.log.Warn("this rank shares a processor with another and stays there: small collectives may take longer", "err", err)
	}
}

// sharesSeat says whether a rank of a lower number has given way on cpu, too, in this
// barrier or lately. Only the higher one moves, or both would meet again elsewhere.
func (a *arena) sharesSeat(barrier uint32, cpu int) bool {
	for l := range a.local {
		if b, c := a.slot(l).sitting.get(); c == cpu && c >= 0 && near(barrier, b) {
			return true
		}
	}
	return false
}

// near says whether two barriers are lately apart at most, whichever is the later one.
func near(a, b uint32) bool { return int32(a-b) <= lately && int32(b-a) <= lately }

// freeSeat is a processor of those in mask, next after cpu, on which no other rank has
// given way last; -1 if there is none.
func (a *arena) freeSeat(cpu int, mask *unix.CPUSet) int {
	n := 8 * int(unsafe.Sizeof(*mask))
	for i := 1; i < n; i++ {
		if c := (cpu + i) % n; mask.IsSet(c) && !a.taken(c) {
			return c
		}
	}
	return -1
}

// taken says whether another rank has last given way on cpu.
func (a *arena) taken(cpu int) bool {
	for l := range a.ranks {
		if _, c := a.slot(l).sitting.get(); l != a.local && c == cpu {
			return true
		}
	}
	return false
}

// stepAside moves this thread from cpu to a processor without a rank, if it may run
// on one.
func (a *arena) stepAside(cpu int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &a.seat
	if err := unix.SchedGetaffinity(0, &s.mask); err != nil {
		return fmt.Errorf("ask which processors a thread may run on: %w", err)
	}
	to := a.freeSeat(cpu, &s.mask)
	if to < 0 {
		return nil
	}
	s.one.Zero()
	s.one.Set(to)
	if err := unix.SchedSetaffinity(0, &s.one); err != nil {
		return fmt.Errorf("move a thread to processor %d: %w", to, err)
	}
	if err := unix.SchedSetaffinity(0, &s.mask); err != nil {
		return fmt.Errorf("let a thread leave processor %d again: %w", to, err)
	}
	return nil
}

// processor is where this thread runs, or just ran; -1 if that is not known.
func processor() int {
	var cpu uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return -1
	}
	return int(cpu)
}
