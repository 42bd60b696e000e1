package host

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSeatDue: a rank moves after some waits in a row on a processor that it shares,
// and later each time unless moving has helped.
func TestSeatDue(t *testing.T) {
	var s seat
	waits := func() int {
		for n := 1; n <= 2*mostShared; n++ {
			if s.due(true) {
				return n
			}
		}
		return -1
	}
	for range fewestShared - 1 {
		s.due(true)
	}
	if s.due(false); waits() != fewestShared {
		t.Errorf("a wait elsewhere in between does not count anew")
	}
	if n := waits(); n != 4*fewestShared {
		t.Errorf("after a move that has not helped it moves after %d waits, want %d", n, 4*fewestShared)
	}
	for range 10 {
		waits()
	}
	if n := waits(); n != mostShared {
		t.Errorf("after many moves it moves after %d waits, want %d", n, mostShared)
	}
	s.quick = calm
	waits()
	if n := waits(); n != fewestShared {
		t.Errorf("after a move that has helped it moves after %d waits, want %d", n, fewestShared)
	}
}

// TestSharesSeat: only the higher of two ranks that give way in turn on one processor
// finds that it shares it, whoever of them came last, and however the barriers count.
func TestSharesSeat(t *testing.T) {
	low := testArena(t, 3)
	high := *low
	high.local = 2
	for _, at := range []uint32{100, 0, ^uint32(0)} {
		for _, c := range []struct {
			after uint32 // barriers of the other's after at
			cpu   int
			want  bool
		}{{0, 5, true}, {1, 5, true}, {^uint32(0), 5, true}, {1, 4, false}, {20, 5, false}, {^uint32(20), 5, false}} {
			low.slot(0).sitting.set(at+c.after, c.cpu)
			if got := high.sharesSeat(at, 5); got != c.want {
				t.Errorf("barrier %d, the other %d later on processor %d: shared is %v, want %v", at, int32(c.after), c.cpu, got, c.want)
			}
			low.slot(2).sitting.set(at, 5)
			if low.sharesSeat(at+c.after, c.cpu) {
				t.Error("the lower rank would move, too")
			}
		}
	}
	if high.sharesSeat(1, -1) {
		t.Error("it shares a processor that is not known")
	}
}

// TestFreeSeat: the next processor that may be used and that no other rank uses.
func TestFreeSeat(t *testing.T) {
	a := testArena(t, 3)
	a.local = 2
	a.slot(0).sitting.set(7, 3)
	a.slot(1).sitting.set(7, 5)
	a.slot(2).sitting.set(7, 3)
	var mask unix.CPUSet
	for _, c := range []int{1, 3, 5} {
		mask.Set(c)
	}
	if c := a.freeSeat(3, &mask); c != 1 {
		t.Errorf("got processor %d, want 1: 4 is not in the mask, 5 is taken", c)
	}
	mask.Clear(1)
	if c := a.freeSeat(3, &mask); c != -1 {
		t.Errorf("got processor %d, want none", c)
	}
}

// TestStepAside moves a thread, which may run afterwards where it might before.
func TestStepAside(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := testArena(t, 2)
	a.local = 1
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if before.Count() < 2 {
		t.Skip("this needs two processors that the thread may run on")
	}
	for range 1000 { // the kernel may move it, too
		from := a.sit(7)
		a.slot(0).sitting.set(7, from)
		if err := a.stepAside(from); err != nil {
			t.Fatal(err)
		}
		moved := processor() != from
		if err := unix.SchedGetaffinity(0, &after); err != nil {
			t.Fatal(err)
		}
		if after != before {
			t.Fatalf("it may run on %d processors, before on %d", after.Count(), before.Count())
		}
		if moved {
			return
		}
	}
	t.Error("it never moved")
}
