package host

import (
	"context"
	"errors"

	"ebtrain/collective"
)

// One goroutine at a time runs the queue: it has set busy. That is the Comm's
// own goroutine, the runner, so that collectives go on while the caller
// computes; or, where all ranks share a host, a caller that waits anyway and
// finds nobody at it: waking another goroutine would cost more than a small
// collective. A begin of the head may be done already, by Start (begun).
//
// Who gives busy up while there is something left to do wakes the runner. The
// runner ends after Close, when nobody is busy: from then on nothing touches
// the arena.

// signal wakes the runner.
func (c *Comm) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run is the life of the runner.
func (c *Comm) run() {
	defer close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if !c.busy && !c.idle() {
			c.work(context.Background(), never, true)
		}
		if !c.busy && c.closed {
			return
		}
		c.mu.Unlock()
		<-c.wake
		c.mu.Lock()
	}
}

// idle says whether there is nothing to run. c.mu is held.
func (c *Comm) idle() bool { return c.queue.empty() || c.broken != nil }

// free says whether a caller that waits may run the head: not an Alloc, which
// cannot be interrupted, nor what goes over the network. c.mu is held.
func (c *Comm) free() bool {
	return !c.busy && !c.idle() && c.topo.oneHost() && c.queue.at(c.queue.done).alloc == nil
}

// work runs the queue up to collective last. c.mu is held when it is called
// and when it returns, but not while a collective runs.
func (c *Comm) work(ctx context.Context, last uint64, runner bool) {
	c.busy = true
	for !c.idle() && c.queue.done <= last {
		it, begun := *c.queue.at(c.queue.done), c.begun
		if it.alloc != nil && !runner {
			break
		}
		c.mu.Unlock()
		err := c.execute(ctx, it, begun)
		c.mu.Lock()
		c.settle(err)
	}
	c.drop()
}

// settle ends the head of the queue, with err or well. An error is the end of
// all that follow, too. c.mu is held.
func (c *Comm) settle(err error) {
	c.begun = false
	if err != nil {
		c.broken, c.queue.ring = err, nil
	} else {
		c.queue.pop()
		c.complete.Store(c.queue.done)
	}
	c.rouse()
}

// drop gives the queue up to whoever takes it next. A head that Start has begun
// waits for its Wait. c.mu is held.
func (c *Comm) drop() {
	c.busy = false
	left := c.queue.next - c.queue.done
	if c.closed || !c.idle() && (!c.begun || left > 1 || len(c.asleep) > 0) {
		c.signal()
	}
}

// announce says that it begins to run.
func (c *Comm) announce(it item) {
	c.recorder.Begin(it.seq, it.req)
	if c.progress != nil {
		c.progress(it.seq, it.req.Kind, it.req.Label)
	}
}

// execute runs it, or what is left of it if it was begun.
func (c *Comm) execute(ctx context.Context, it item, begun bool) error {
	if !begun {
		if f := c.failure(); f != nil {
			return f
		}
		c.announce(it)
	}
	err := c.carryOut(ctx, it, begun)
	if err != nil {
		err = c.conclude(err)
	}
	c.recorder.End(err)
	if err != nil {
		c.log.Warn("collective failed", "seq", it.seq, "kind", it.req.Kind.String(), "label", it.req.Label,
			"err", err, "recent", collective.Dump(c.recorder.Recent()))
	}
	return err
}

func (c *Comm) carryOut(ctx context.Context, it item, begun bool) error {
	if it.alloc != nil {
		return c.alloc(ctx, it)
	}
	if begun {
		return c.finish(ctx, it.req)
	}
	if err := it.req.Check(c.size); err != nil {
		return err
	}
	switch {
	case c.size == 1: // every collective of one rank leaves its vector as it is
		return nil
	case c.topo.oneHost():
		c.begin(it.seq, it.req)
		return c.finish(ctx, it.req)
	}
	return c.manyHosts(it.seq, it.req)
}

// describe is err, for which collective t was not completed, as its callers
// see it.
func (c *Comm) describe(t collective.Ticket, err error) error {
	e := &collective.Error{Kind: t.Kind, Label: t.Label, Seq: t.Seq, Rank: c.rank, Peer: -1, Err: err}
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
