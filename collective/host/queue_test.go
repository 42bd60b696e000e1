package host

import (
	"errors"
	"testing"

	"ebtrain/collective"
)

// TestQueueKeepsOrder starts more than it has places for, in turn with ends.
func TestQueueKeepsOrder(t *testing.T) {
	var q queue
	started, ended := 0, 0
	for round := range 200 {
		for range round % 40 {
			if seq := q.add(item{req: collective.Request{Root: started}}); seq != uint64(started) {
				t.Fatalf("number %d, want %d", seq, started)
			}
			started++
		}
		for range round % 37 {
			it, ok := q.take(false)
			if ok != (ended < started) || ok && (it.req.Root != ended || it.seq != uint64(ended)) {
				t.Fatalf("took %d (%v), want %d of %d", it.req.Root, ok, ended, started)
			}
			if !ok {
				break
			}
			if _, twice := q.take(false); twice {
				t.Fatal("the head was given to two")
			}
			q.settle(nil)
			if !q.over(uint64(ended)) || q.outcome(uint64(ended)) != nil || q.over(uint64(ended)+1) {
				t.Fatalf("after %d: over %v and %v, outcome %v", ended, q.over(uint64(ended)), q.over(uint64(ended)+1), q.outcome(uint64(ended)))
			}
			ended++
		}
	}
}

// TestQueueFails wants the first failure for the collective that failed, all
// behind it and all that come, and nothing for those before.
func TestQueueFails(t *testing.T) {
	var q queue
	for range 3 {
		q.add(item{})
	}
	s := q.sleep(2)
	failed := errors.New("failed")
	for _, err := range []error{nil, failed} {
		if _, ok := q.take(false); !ok {
			t.Fatal("nothing to take")
		}
		q.settle(err)
	}
	select {
	case <-s.wake:
	default:
		t.Error("who waits for the third sleeps on")
	}
	late := q.add(item{})
	if later := q.add(item{}); late != 3 || later != 4 {
		t.Errorf("what is started after the failure of three has the numbers %d and %d, want 3 and 4", late, later)
	}
	for seq, want := range map[uint64]error{0: nil, 1: failed, 2: failed, late: failed} {
		if !q.over(seq) || !errors.Is(q.outcome(seq), want) {
			t.Errorf("%d: over %v with %v, want %v", seq, q.over(seq), q.outcome(seq), want)
		}
	}
	if _, ok := q.take(false); ok || !q.idle() {
		t.Error("it goes on after a failure")
	}
	q.closed = true
	if seq := q.add(item{}); seq != never || !errors.Is(q.outcome(seq), collective.ErrClosed) {
		t.Errorf("number %d after close, outcome %v", seq, q.outcome(seq))
	}
}

// TestQueueLetsGo: of a collective that is over the queue keeps nothing: its vector's memory is
// the caller's, to be collected when nobody needs it any more.
func TestQueueLetsGo(t *testing.T) {
	x := []float32{1}
	for _, err := range []error{nil, errors.New("failed")} {
		var q queue
		q.add(item{req: collective.Request{Vec: collective.VecOf(x)}, alloc: &allocation{}, within: func(*Inside) error { return nil }})
		q.take(false)
		q.settle(err)
		for i, it := range q.ring {
			if it.req.Vec.Ptr != nil || it.alloc != nil || it.within != nil {
				t.Errorf("ended with %v: place %d of the queue has %+v", err, i, it)
			}
		}
	}
}

// TestQueueHelpers: who waits may run what can be interrupted, if it may at all,
// and a head that Start has begun is left to its Wait.
func TestQueueHelpers(t *testing.T) {
	for _, helped := range []bool{false, true} {
		q := queue{helped: helped}
		q.add(item{})
		q.add(item{alloc: &allocation{}})
		if _, ok := q.take(true); ok != helped {
			t.Errorf("a helper took the head: %v, want %v", ok, helped)
		}
		if !helped {
			q.take(false)
		}
		q.settle(nil)
		if _, ok := q.take(true); ok {
			t.Error("a helper took an Alloc")
		}
		if !q.left() {
			t.Error("nobody is found for the Alloc")
		}
	}
	q := queue{helped: true}
	q.add(item{})
	q.take(true)
	q.busy, q.begun = false, true
	if q.left() {
		t.Error("somebody is woken for what a Wait will end")
	}
	q.sleep(0)
	if !q.left() {
		t.Error("nobody is woken though somebody sleeps")
	}
}
