package host

import (
	"log/slog"
	"sync"
	"testing"
	"time"
)

func testArena(t *testing.T, ranks int) *arena {
	t.Helper()
	seg, err := privateSegment(partialAt(ranks, 64))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := seg.unmap(); err != nil {
			t.Error(err)
		}
	})
	return newArena(seg, 0, ranks, 64, 0, newCourtesy(company{ranks: ranks, process: true}), slog.New(slog.DiscardHandler))
}

// later does f in a moment; the channel is closed when it is done.
func later(f func()) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(5*time.Millisecond, func() { defer close(done); f() })
	return done
}

// TestBarrierAllOrNone aborts at random moments: all ranks pass the same
// number of barriers.
func TestBarrierAllOrNone(t *testing.T) {
	const ranks = 4
	for round := range 200 {
		a := testArena(t, ranks)
		passes := make(chan int, ranks)
		for range ranks {
			go func() {
				n := 0
				for {
					if out, _ := barrier(a); out != passed {
						break
					}
					n++
				}
				passes <- n
			}()
		}
		time.Sleep(time.Duration(round) * time.Microsecond)
		a.abort(record{codeAborted, 0, -1, "test"})
		a.abort(record{codeAborted, 1, -1, "too late"}) // the first record is kept
		first := <-passes
		for range ranks - 1 {
			if n := <-passes; n != first {
				t.Fatalf("round %d: ranks passed %d and %d barriers", round, first, n)
			}
		}
		if r, ok := a.why(); !ok || r.text != "test" {
			t.Fatalf("got record %v, %v", r, ok)
		}
	}
}

// TestBarrierLateRank lets the last rank arrive after the others have given
// up because of an abort: it must not pass.
func TestBarrierLateRank(t *testing.T) {
	a := testArena(t, 2)
	gen := a.ctl.gen.Load() // rank 1 is about to arrive
	done := make(chan outcome)
	go func() {
		out, _ := barrier(a) // rank 0
		done <- out
	}()
	for a.ctl.arrived.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	a.abort(record{codeAborted, 0, -1, "test"})
	if out := <-done; out != aborted {
		t.Errorf("rank 0: got outcome %d, want aborted", out)
	}
	if g := a.arrive(gen); g.state != aborted {
		t.Errorf("rank 1: got outcome %d, want aborted", g.state)
	}
}

// TestBarrierDeserted lets a rank leave instead of coming, and another leave
// after it has come.
func TestBarrierDeserted(t *testing.T) {
	a := testArena(t, 2)
	other := later(func() { a.leave(1) })
	if out, who := barrier(a); out != deserted || who != 1 {
		t.Errorf("got outcome %d, rank %d, want rank 1 to have deserted", out, who)
	}
	<-other
	b := testArena(t, 2)
	g := b.enter() // rank 0 is in the barrier and slow to look
	if out, _ := barrier(b); out != passed {
		t.Errorf("rank 1: got outcome %d, want passed", out)
	}
	b.leave(1)
	if out, _ := b.await(g, nil); out != passed {
		t.Errorf("rank 0: got outcome %d, want passed: rank 1 left afterwards", out)
	}
}

// TestBarrierInterrupted lets a rank's patience end, and then wait again.
func TestBarrierInterrupted(t *testing.T) {
	a := testArena(t, 2)
	g, quit := a.enter(), make(chan struct{})
	later(func() { close(quit) })
	if out, _ := a.await(g, quit); out != interrupted {
		t.Errorf("got outcome %d, want interrupted", out)
	}
	other := later(func() { a.enter() })
	if out, _ := a.await(g, nil); out != passed {
		t.Errorf("got outcome %d, want passed", out)
	}
	<-other
}

// TestBarrierWraps counts past the end of the barrier's word.
func TestBarrierWraps(t *testing.T) {
	a := testArena(t, 2)
	a.ctl.gen.Store(^uint32(0) - 5)
	var ranks sync.WaitGroup
	defer ranks.Wait() // before the memory goes
	for range 2 {
		ranks.Go(func() {
			for range 10 {
				barrier(a)
			}
		})
	}
	for end := time.Now().Add(time.Minute); a.ctl.gen.Load() != 14; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the barrier stands at %d, want 14", a.ctl.gen.Load())
		}
	}
}

// barrier waits until every rank has called it, each with an arena of its own.
func barrier(shared *arena) (outcome, int) {
	a := *shared
	return a.await(a.enter(), nil)
}
