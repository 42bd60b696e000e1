package host

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"ebtrain/collective"
)

// caller is one of two ranks, and a roll call of its.
func caller(t *testing.T) (*Comm, *rollCall) {
	t.Helper()
	comms, err := NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range comms {
			shut(t, c)
		}
	})
	return comms[0], newRollCall(comms[0], time.Minute)
}

// TestRollCallOfTheWaitBefore: a timer that ran out as one wait ended, and whose call comes when
// the next has begun, says nothing of that: all have its whole limit to come.
func TestRollCallOfTheWaitBefore(t *testing.T) {
	c, r := caller(t)
	barrier := collective.Request{Kind: collective.Barrier}
	r.expect(barrier, true)
	r.over()
	r.expect(barrier, true)
	r.late()
	r.late()
	r.over()
	for range 2 {
		r.due = time.Time{} // late of a wait that is over, with none behind it
		r.late()
	}
	if err := c.Failure(); err != nil {
		t.Errorf("the wait that has just begun ends with: %v", err)
	}
}

// TestRollCallWithNobodyMissing: where all have come, as far as this rank knows, data may take
// as long as they need; a wait in which nothing is moved ends, but others, who may know who is
// missing, have a second to say so first.
func TestRollCallWithNobodyMissing(t *testing.T) {
	c, r := caller(t)
	late := func() {
		r.due = time.Time{} // it is over
		r.late()
	}
	sum := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf([]float32{1})}
	r.expect(sum, false)
	for range 3 {
		late()
	}
	r.over()
	if err := c.Failure(); err != nil {
		t.Errorf("data that take long end with: %v", err)
	}
	r.expect(sum, true)
	late()
	if err := c.Failure(); err != nil || time.Until(r.due) > time.Second {
		t.Errorf("others have no second to name who is missing, but %v: %v", time.Until(r.due), err)
	}
	late()
	if err := c.Failure(); err == nil || !strings.Contains(err.Error(), "a rank of another host has not come to all-reduce sum f32[1] within 1m0s") {
		t.Errorf("then it ends with: %v", err)
	}
	r.over() // before the memory goes
}

// TestFollowersAreMorePatient: who does not speak to other hosts leaves it to those who do to
// say who is missing there; without a limit nobody is.
func TestFollowersAreMorePatient(t *testing.T) {
	comms, err := NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for r, c := range comms {
		if with, none := newRollCall(c, time.Minute).limit, newRollCall(c, 0).limit; with != time.Minute+time.Duration(r)*time.Second || none != 0 {
			t.Errorf("rank %d waits for %v where a leader waits for a minute, and for %v without a limit", r, with, none)
		}
		shut(t, c)
	}
}

// TestRollCallIsForgotten: a roll call that nobody needs any more keeps nothing in memory: its
// timer would keep a group that is closed. Among many others the runtime leaves a stopped timer
// where it is.
func TestRollCallIsForgotten(t *testing.T) {
	others := func() {
		for range 64 {
			other := time.AfterFunc(time.Hour, func() {})
			t.Cleanup(func() { other.Stop() })
		}
	}
	c, _ := caller(t)
	for _, limit := range []time.Duration{0, time.Minute} {
		r := func() weak.Pointer[rollCall] {
			others()
			r := newRollCall(c, limit)
			others()
			r.expect(collective.Request{Kind: collective.Barrier}, true)
			r.over()
			return weak.Make(r)
		}()
		for end := time.Now().Add(10 * time.Second); r.Value() != nil; runtime.GC() {
			if time.Now().After(end) {
				t.Fatalf("with the limit %v it is still there", limit)
			}
		}
	}
}

// nowhere is a device without memory, which is asked for no barriers.
type nowhere struct{}

func (nowhere) Alloc(*Inside, int) (collective.Vec, error) { return collective.Vec{}, nil }
func (nowhere) Run(_ *Inside, req collective.Request) error {
	return fmt.Errorf("a device that moves nothing is asked for %s", req)
}

// TestNobodyIsLateOutsideAWait: when what the ranks must come to is over nobody is expected any
// more, however it was asked for: else the group would end as soon as the limit is.
func TestNobodyIsLateOutsideAWait(t *testing.T) {
	comms, err := NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	barrier := collective.Request{Kind: collective.Barrier}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer shut(t, c)
			o, err := c.Over(t.Context(), nowhere{}, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			defer shut(t, o)
			expects := func(after string, err error) {
				r := o.mover.(*deviceMover).in.call
				r.mu.Lock()
				defer r.mu.Unlock()
				if err != nil || r.what.Kind != 0 {
					t.Errorf("after %s, %v, somebody is expected at %v", after, err, r.what)
				}
			}
			expects("a barrier", o.Do(t.Context(), barrier))
			expects("what asks inside", o.Within(t.Context(), "places", func(in *Inside) error {
				expects("coming there", nil)
				first := in.Do(t.Context(), barrier)
				expects("a collective inside", first)
				second := in.CallRoll(t.Context(), "the roll call")
				expects("a roll call inside", second)
				return errors.Join(first, second)
			}))
		})
	}
	wg.Wait()
}
