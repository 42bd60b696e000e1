package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"ebtrain/collective"
)

// paced is a mover whose every call waits until the test lets it go on, with what it then
// returns; or finish until its context ends. What is under way is in calls.
type paced struct {
	soon  bool // begin is done by Start
	calls chan string
	goOn  chan error
}

func (m *paced) call(what string) error {
	m.calls <- what
	return <-m.goOn
}

func (m *paced) quick(collective.Request) bool { return m.soon }
func (m *paced) begin(seq uint64, _ collective.Request) {
	if m.soon {
		_ = m.call(fmt.Sprint("begin ", seq)) // it cannot fail
	}
}
func (m *paced) finish(ctx context.Context, req collective.Request) error {
	m.calls <- "finish " + req.Label
	select {
	case err := <-m.goOn:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
func (m *paced) alloc(_ context.Context, seq uint64, _ int) (collective.Vec, error) {
	return collective.Vec{}, m.call(fmt.Sprint("alloc ", seq))
}
func (m *paced) unmap() error { return nil }
func (m *paced) count(bool)   {}

// under wants the call under way to be this one, and no other beside it.
func (m *paced) under(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-m.calls:
		if got != want || len(m.calls) > 0 {
			t.Fatalf("%q is under way, and %d calls beside it, want %q alone", got, len(m.calls), want)
		}
	default:
		t.Fatalf("nothing is under way, want %q", want)
	}
}

// idle wants no call to be under way.
func (m *paced) idle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if len(m.calls) > 0 {
		t.Fatalf("%q is under way, want nothing", <-m.calls)
	}
}

// pacedRunner is a runner of a group of one, whose own goroutine ends with the test.
func pacedRunner(t *testing.T, helped, soon bool) (*runner, *paced) {
	t.Helper()
	m := &paced{soon: soon, calls: make(chan string, 8), goOn: make(chan error)}
	a := &alarm{peers: &peers{topo: newTopology(0, []string{""}), log: quiet}, raised: make(chan struct{})}
	r := newRunner(&executor{mover: m, alarm: a, size: 1, log: quiet, recorder: collective.NewRecorder(8)}, helped, 0)
	go r.run()
	synctest.Wait() // it has seen that there is nothing to do
	return r, m
}

func labelled(label string) collective.Request {
	return collective.Request{Kind: collective.Barrier, Label: label}
}

// awaited is a call of WaitFor in a goroutine, and how it ended.
func awaited(ctx context.Context, r *runner, seq uint64, req collective.Request) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- r.WaitFor(ctx, ticket(seq, req)) }()
	synctest.Wait()
	return ended
}

// shutRunner is Close, as far as it concerns a runner.
func shutRunner(r *runner) {
	if pending, _ := r.close(); pending > 0 {
		r.exec.alarm.abort(collective.ErrClosed)
	}
	r.signal()
}

// endRunner closes a runner and waits for its end.
func endRunner(r *runner) {
	shutRunner(r)
	<-r.ended
}

// is says whether the channel is closed.
func is(closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	default:
		return false
	}
}

// TestCloseAwaitsHelper: whoever runs a collective touches memory that Close takes away, so
// a runner does not end before a caller that waits is through with the one that it runs.
func TestCloseAwaitsHelper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, false)
		seq := r.put(item{req: labelled("a")})
		ended := awaited(t.Context(), r, seq, labelled("a"))
		m.under(t, "finish a")
		shutRunner(r)
		synctest.Wait()
		if is(r.ended) {
			t.Error("it has ended, and a collective is under way")
		}
		m.goOn <- errBarrier
		if err := <-ended; !errors.Is(err, collective.ErrClosed) || !errors.Is(err, collective.ErrAborted) {
			t.Errorf("the collective ended with %v, want an abort because of Close", err)
		}
		<-r.ended
	})
}

// TestCloseAwaitsBegin: the same of what Start itself does of a small collective, which then
// has to be ended by the runner, as nobody waits for it.
func TestCloseAwaitsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, true)
		go r.start(labelled("a"))
		m.under(t, "begin 0")
		shutRunner(r)
		synctest.Wait()
		if is(r.ended) {
			t.Error("it has ended, and a collective is being begun")
		}
		m.goOn <- nil
		m.under(t, "finish a")
		m.goOn <- errBarrier
		<-r.ended
	})
}

// TestBeginIsNotWaitedOut: who waits while another goroutine's Start is at the begin of a
// collective is not forgotten when that is done, nor is what was started behind it.
func TestBeginIsNotWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, true)
		go r.start(labelled("a"))
		m.under(t, "begin 0")
		a := awaited(t.Context(), r, 0, labelled("a"))
		b := awaited(t.Context(), r, r.start(labelled("b")), labelled("b"))
		m.idle(t)
		m.goOn <- nil
		m.under(t, "finish a")
		m.goOn <- nil
		m.under(t, "begin 1")
		m.goOn <- nil
		m.under(t, "finish b")
		m.goOn <- nil
		if err := errors.Join(<-a, <-b); err != nil {
			t.Error(err)
		}
		endRunner(r)
	})
}

// TestBegunIsGoneOnWith: what Start has begun is left to its Wait, which is expected soon; when
// another is started behind it, it is gone on with though nobody waits: other ranks do.
func TestBegunIsGoneOnWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, true)
		go r.start(labelled("a"))
		m.under(t, "begin 0")
		m.goOn <- nil
		m.idle(t)
		r.start(labelled("b"))
		m.under(t, "finish a")
		m.goOn <- nil
		m.under(t, "begin 1")
		m.goOn <- nil
		m.under(t, "finish b")
		m.goOn <- nil
		endRunner(r)
	})
}

// TestBegunIsNotInside: a rank is in a collective from when it runs that to the end, or waits in
// it; not from when Start has begun it: who is stuck before its Wait would look like one that
// waits for others.
func TestBegunIsNotInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, true)
		inside := 0
		r.exec.progress = func(uint64, collective.Request) { inside++ }
		r.exec.ended = func(uint64, error) { inside-- }
		go r.start(labelled("a"))
		m.under(t, "begin 0")
		m.goOn <- nil
		m.idle(t)
		if inside != 0 {
			t.Error("it is told of as inside, and nobody waits")
		}
		a := awaited(t.Context(), r, 0, labelled("a"))
		m.under(t, "finish a")
		if inside != 1 {
			t.Errorf("who waits is told of as inside %d collectives", inside)
		}
		m.goOn <- nil
		if err := <-a; err != nil || inside != 0 {
			t.Errorf("it ended with %v, and is told of as inside %d", err, inside)
		}
		endRunner(r)
	})
}

// TestHelperLeavesTheRest: who has waited for one collective, and run it, has the others run
// by the runner, and so has who has waited for an Alloc.
func TestHelperLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, false)
		a := awaited(t.Context(), r, r.put(item{req: labelled("a")}), labelled("a"))
		m.under(t, "finish a")
		for _, label := range []string{"b", "c"} {
			r.put(item{req: labelled(label)})
		}
		m.goOn <- nil
		if err := <-a; err != nil {
			t.Error(err)
		}
		m.under(t, "finish b")
		m.goOn <- nil
		m.under(t, "finish c")
		m.goOn <- nil
		alloc := awaited(t.Context(), r, r.put(item{req: labelled("d"), alloc: &allocation{}}), labelled("d"))
		m.under(t, "alloc 3")
		m.goOn <- nil
		if err := <-alloc; err != nil {
			t.Error(err)
		}
		endRunner(r)
	})
}

// TestWaitEndsWithItsContext: a wait whose context ends has the group end for its cause,
// whoever runs the collective; it returns when that is over, as the vector is its caller's
// again then.
func TestWaitEndsWithItsContext(t *testing.T) {
	cause := errors.New("the reason")
	for _, helped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, m := pacedRunner(t, helped, false)
			seq := r.put(item{req: labelled("a")})
			if helped { // another waits for longer, and runs it
				awaited(t.Context(), r, seq, labelled("a"))
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := awaited(ctx, r, seq, labelled("a"))
			m.under(t, "finish a")
			cancel(cause)
			synctest.Wait()
			if f := r.exec.alarm.failure(); f == nil || !errors.Is(f, cause) {
				t.Errorf("helped %v: the group has ended with %v, want %v", helped, f, cause)
			}
			if len(ended) > 0 {
				t.Errorf("helped %v: the wait has ended, and the collective is under way", helped)
			}
			m.goOn <- cause
			if err := <-ended; !errors.Is(err, cause) || !errors.Is(err, collective.ErrAborted) {
				t.Errorf("helped %v: the wait ended with %v, want an abort because of %v", helped, err, cause)
			}
			endRunner(r)
		})
	}
}

// TestHelperEndsWithItsContext: who runs a collective while it waits gives up when its context
// ends, which ends the group. What ends before it has begun is not begun.
func TestHelperEndsWithItsContext(t *testing.T) {
	cause := errors.New("the reason")
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, m := pacedRunner(t, true, false)
			ctx, cancel := context.WithCancelCause(t.Context())
			if early {
				cancel(cause)
			}
			ended := awaited(ctx, r, r.put(item{req: labelled("a")}), labelled("a"))
			if !early {
				m.under(t, "finish a")
			}
			m.idle(t)
			cancel(cause)
			if err := <-ended; !errors.Is(err, cause) || !errors.Is(err, collective.ErrAborted) {
				t.Errorf("early %v: the wait ended with %v, want an abort because of %v", early, err, cause)
			}
			late := r.start(labelled("b"))
			if err := r.WaitFor(t.Context(), ticket(late, labelled("b"))); !errors.Is(err, cause) {
				t.Errorf("early %v: what was started later ended with %v", early, err)
			}
			endRunner(r)
			never := awaited(t.Context(), r, r.start(labelled("c")), labelled("c"))
			if e, ok := errors.AsType[*collective.Error](<-never); !ok || e.Seq != 0 || !errors.Is(e, collective.ErrClosed) {
				t.Errorf("what was started after Close ended with %v, want number 0, closed", e)
			}
		})
	}
}

// TestNothingBeginsAfterFailure: what is started when the group has ended fails for that reason,
// without being begun or shown to others.
func TestNothingBeginsAfterFailure(t *testing.T) {
	cause := errors.New("the reason")
	for _, soon := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, m := pacedRunner(t, true, soon)
			r.exec.alarm.abort(cause)
			r.exec.progress = func(uint64, collective.Request) { t.Error("somebody is told that it begins") }
			ended := awaited(t.Context(), r, r.start(labelled("a")), labelled("a"))
			m.idle(t)
			if err := <-ended; !errors.Is(err, cause) {
				t.Errorf("it ended with %v, want %v", err, cause)
			}
			endRunner(r)
		})
	}
}

// TestCloseCounts what is pending, of which the others are told, and is the first once.
func TestCloseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, false)
		var last uint64
		for _, label := range []string{"a", "b", "c"} {
			last = r.start(labelled(label))
		}
		for _, label := range []string{"a", "b"} {
			m.under(t, "finish "+label)
			m.goOn <- nil
		}
		m.under(t, "finish c")
		r.start(labelled("d"))
		for _, want := range []bool{true, false} {
			if pending, first := r.close(); pending != 2 || first != want {
				t.Errorf("%d are pending, closed for the first time: %v, want 2, %v", pending, first, want)
			}
		}
		shutRunner(r)
		m.goOn <- errBarrier
		if err := r.WaitFor(t.Context(), ticket(last, labelled("c"))); !errors.Is(err, collective.ErrAborted) {
			t.Errorf("what was pending ended with %v", err)
		}
		<-r.ended
	})
}

// TestDrain waits for the last that was started, and is how it ended; nothing is well ended.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := pacedRunner(t, true, false)
		if err := r.drain(t.Context()); err != nil {
			t.Errorf("nothing was started: %v", err)
		}
		odd := errors.New("odd")
		for _, fails := range []error{nil, odd} {
			r.put(item{req: labelled("a")})
			r.put(item{req: labelled("b")})
			ended := make(chan error, 1)
			go func() { ended <- r.drain(t.Context()) }()
			m.under(t, "finish a")
			m.goOn <- nil
			m.under(t, "finish b")
			if len(ended) > 0 {
				t.Error("it has not waited for the last")
			}
			m.goOn <- fails
			if err := <-ended; !errors.Is(err, fails) {
				t.Errorf("the last ended with %v, and all with %v", fails, err)
			}
		}
		endRunner(r)
	})
}
