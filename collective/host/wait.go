package host

import (
	"context"

	"ebtrain/collective"
)

// waiter is what stands behind the tickets of a Comm. Collectives complete in
// order and nothing completes after the first failure, so how many are
// complete, and the failure, say how each of them ended: a ticket needs no
// memory of its own, and stays good for ever.
type waiter struct{ c *Comm }

// WaitFor waits for the collective t. See collective.Pending.
func (w waiter) WaitFor(ctx context.Context, t collective.Ticket) error {
	if err := w.c.wait(ctx, t.Seq); err != nil {
		return w.c.describe(t, err)
	}
	return nil
}

// wait returns when collective seq is over, with the reason if it failed. If
// ctx ends first, the group does.
func (c *Comm) wait(ctx context.Context, seq uint64) error {
	if c.complete.Load() > seq {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over(seq) {
		switch {
		case ctx.Err() != nil:
			c.mu.Unlock()
			c.Abort(context.Cause(ctx))
			ctx = context.Background() // the memory is the caller's again when the collective is over
			c.mu.Lock()
		case c.free():
			c.work(ctx, seq, false)
		default:
			if !c.busy {
				c.signal()
			}
			c.sleep(ctx, seq)
		}
	}
	switch {
	case c.queue.done > seq:
		return nil
	case seq == never:
		return collective.ErrClosed
	}
	return c.broken
}

// over says whether collective seq has ended, well or not. c.mu is held.
func (c *Comm) over(seq uint64) bool {
	return c.queue.done > seq || c.broken != nil || seq == never
}

// sleeper is a caller that waits for collective seq while somebody else runs
// the queue.
type sleeper struct {
	seq  uint64
	wake chan struct{} // capacity 1; told once that seq is over
}

// sleep waits until collective seq is over or ctx ends. c.mu is held when it
// is called and when it returns, but not while it sleeps.
func (c *Comm) sleep(ctx context.Context, seq uint64) {
	s := c.sleeper(seq)
	c.mu.Unlock()
	for range c.spins { // it may be over before a sleep would begin
		if c.complete.Load() > seq {
			break
		}
	}
	select {
	case <-s.wake:
	case <-ctx.Done():
		c.Abort(context.Cause(ctx))
		<-s.wake
	}
	c.mu.Lock()
	c.spare = append(c.spare, s)
}

// sleeper is one for collective seq, among those asleep. c.mu is held.
func (c *Comm) sleeper(seq uint64) *sleeper {
	var s *sleeper
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		s = &sleeper{wake: make(chan struct{}, 1)}
	}
	s.seq = seq
	c.asleep = append(c.asleep, s)
	return s
}

// rouse wakes those whose collective is over. c.mu is held.
func (c *Comm) rouse() {
	kept := c.asleep[:0]
	for _, s := range c.asleep {
		if c.over(s.seq) {
			s.wake <- struct{}{} // it has room: nobody else tells s before it is used again
		} else {
			kept = append(kept, s)
		}
	}
	clear(c.asleep[len(kept):])
	c.asleep = kept
}
