package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"ebtrain/collective"
	"ebtrain/collective/subnormal"
)

// runner runs the collectives of a rank in order. One goroutine at a time does:
// it has taken the head of the queue. That is the runner's own, so that
// collectives go on while the caller computes; or, where waits end with a context,
// a caller that waits anyway and finds nobody at it: waking another goroutine
// would cost more than a small collective. A begin of the head may be done
// already, by start.
//
// Who leaves something to do wakes the runner's own goroutine. It ends after
// close, when nobody has taken the head: from then on nothing touches the arena.
type runner struct {
	exec  *executor
	spins int // loads before a caller that waits sleeps

	complete atomic.Uint64 // queue.done for those without mu
	wake     chan struct{} // capacity 1: there is something to run, or close
	ended    chan struct{} // closed when run has ended

	mu    sync.Mutex // guards queue
	queue queue
}

func newRunner(exec *executor, helped bool, spins int) *runner {
	return &runner{exec: exec, spins: spins, wake: make(chan struct{}, 1), ended: make(chan struct{}), queue: queue{helped: helped}}
}

// signal wakes the runner's own goroutine.
func (r *runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run is the life of the runner's own goroutine.
func (r *runner) run() {
	defer close(r.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if it, ok := r.queue.take(false); ok {
			r.carryOut(context.Background(), it)
			continue
		}
		if r.queue.closed && !r.queue.busy {
			return
		}
		r.mu.Unlock()
		<-r.wake
		r.mu.Lock()
	}
}

// carryOut runs the head, which was taken, and lets go of mu meanwhile.
func (r *runner) carryOut(ctx context.Context, it item) {
	begun := r.queue.begun
	r.mu.Unlock()
	err := r.exec.execute(ctx, it, begun)
	r.mu.Lock()
	r.queue.settle(err)
	r.complete.Store(r.queue.done)
}

// put queues it and is its number. Nobody is told.
func (r *runner) put(it item) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.zeros = subnormal.Zeros()
	return r.queue.add(it)
}

// start queues req and is its number. What waits for nobody in a small
// collective is done here, if nothing is before it in the queue: so the other
// ranks need not wait for the runner to wake up.
func (r *runner) start(req collective.Request) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq := r.queue.add(item{req: req, zeros: subnormal.Zeros()})
	if r.queue.done == seq && r.exec.quick(req) {
		if it, ok := r.queue.take(true); ok {
			r.mu.Unlock()
			r.exec.begin(it)
			r.mu.Lock()
			r.queue.busy, r.queue.begun = false, true
		}
	}
	if r.queue.left() {
		r.signal()
	}
	return seq
}

// WaitFor waits for the collective t: a runner is what stands behind the tickets
// of a Comm. Collectives complete in order and nothing completes after the first
// failure, so how many are complete, and the failure, say how each of them
// ended: a ticket needs no memory of its own, and stays good for ever.
func (r *runner) WaitFor(ctx context.Context, t collective.Ticket) error {
	err := r.wait(ctx, t.Seq)
	if err == nil {
		return nil
	}
	e := &collective.Error{Kind: t.Kind, Label: t.Label, Seq: t.Seq, Rank: r.exec.alarm.topo.rank, Peer: -1, Err: err}
	if t.Seq == never {
		e.Seq = 0
	}
	if f, ok := errors.AsType[*failure](err); ok {
		e.Peer = f.peer
		if f.remote && f.peer < 0 {
			e.Peer = f.rank
		}
	}
	return e
}

// wait returns when collective seq is over, with the reason if it failed. If
// ctx ends first, the group does.
func (r *runner) wait(ctx context.Context, seq uint64) error {
	if r.complete.Load() > seq {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ran := false
	for !r.queue.over(seq) {
		if it, ok := r.queue.take(true); ok {
			r.carryOut(ctx, it)
			ran = true
			continue
		}
		if !r.queue.busy {
			r.signal()
		}
		s := r.queue.sleep(seq)
		r.mu.Unlock()
		r.sleep(ctx, s)
		r.mu.Lock()
		r.queue.spare = append(r.queue.spare, s)
	}
	if ran && r.queue.left() {
		r.signal()
	}
	return r.queue.outcome(seq)
}

// sleep waits until s is told or ctx ends, and the group with it.
func (r *runner) sleep(ctx context.Context, s *sleeper) {
	for range r.spins { // it may be over before a sleep would begin
		if r.complete.Load() > s.seq {
			break
		}
	}
	select {
	case <-s.wake:
	case <-ctx.Done():
		r.exec.alarm.abort(context.Cause(ctx))
		<-s.wake
	}
}

// close lets nothing more be started, and says what was not over and whether it
// was open.
func (r *runner) close() (pending uint64, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, r.queue.closed = !r.queue.closed, true
	if !r.queue.idle() {
		pending = r.queue.next - r.queue.done
	}
	return pending, first
}

// drain waits until everything that was started is over, and is how it ended.
func (r *runner) drain(ctx context.Context) error {
	r.mu.Lock()
	last := r.queue.next
	r.mu.Unlock()
	if last == 0 {
		return nil
	}
	return r.wait(ctx, last-1)
}
