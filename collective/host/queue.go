package host

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
)

// pending is a collective that was started.
type pending struct {
	comm  *Comm
	seq   uint64
	req   collective.Request
	alloc *allocation // instead of a request, for Alloc
	done  chan struct{}
	err   error // valid when done is closed
}

// allocation is a call of Alloc.
type allocation struct {
	n   int
	mem []byte // the result
}

// Start queues req. See collective.Comm.
func (c *Comm) Start(req collective.Request) collective.Pending {
	return c.enqueue(&pending{req: req})
}

func (c *Comm) enqueue(p *pending) *pending {
	p.comm, p.done = c, make(chan struct{})
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		p.finish(collective.ErrClosed)
		return p
	}
	p.seq = c.seq
	c.seq++
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	c.signal()
	return p
}

// signal wakes the runner.
func (c *Comm) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Wait blocks until p is complete. See collective.Pending.
func (p *pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.comm.Abort(context.Cause(ctx))
		<-p.done // the memory is the caller's again
	}
	return p.err
}

// finish completes p, with err or well.
func (p *pending) finish(err error) {
	if err != nil {
		e := &collective.Error{Kind: p.req.Kind, Label: p.req.Label, Seq: p.seq, Rank: p.comm.rank, Peer: -1, Err: err}
		var f *failure
		if errors.As(err, &f) {
			e.Peer = f.peer
			if f.remote && f.peer < 0 {
				e.Peer = f.rank
			}
		}
		p.err = e
		if p.alloc != nil {
			p.err = fmt.Errorf("alloc of %d bytes, rank %d: %w", p.alloc.n, p.comm.rank, err)
		}
	}
	close(p.done)
}

// Alloc returns shared memory. See collective.Comm. It takes its place in the
// order of collectives: all ranks call it between the same two.
func (c *Comm) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: alloc of %d bytes", collective.ErrInvalid, n)
	}
	p := c.enqueue(&pending{alloc: &allocation{n: n}, req: collective.Request{Kind: collective.Allocation, Label: fmt.Sprintf("%d bytes", n)}})
	<-p.done
	return p.alloc.mem, p.err
}

// run carries out the queue, in order, until Close.
func (c *Comm) run() {
	defer close(c.ended)
	for {
		p := c.next()
		if p == nil {
			return
		}
		err := c.execute(p)
		c.mu.Lock()
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		p.finish(err)
	}
}

// next waits for the head of the queue. It is nil after Close.
func (c *Comm) next() *pending {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			p := c.queue[0]
			c.mu.Unlock()
			return p
		}
		c.queue = nil
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return nil
		}
		<-c.wake
	}
}

// execute runs p and records it.
func (c *Comm) execute(p *pending) error {
	if f := c.failure(); f != nil {
		return f
	}
	c.recorder.Begin(p.seq, p.req)
	if c.progress != nil {
		c.progress(p.seq, p.req.Kind, p.req.Label)
	}
	err := c.carryOut(p)
	if err != nil {
		err = c.conclude(p, err)
	}
	c.recorder.End(err)
	if err != nil {
		c.log.Warn("collective failed", "seq", p.seq, "kind", p.req.Kind.String(), "label", p.req.Label,
			"err", err, "recent", collective.Dump(c.recorder.Recent()))
	}
	return err
}

func (c *Comm) carryOut(p *pending) error {
	if p.alloc != nil {
		return c.alloc(p)
	}
	if err := p.req.Check(c.size); err != nil {
		return err
	}
	if c.size == 1 { // every collective of one rank leaves its vector as it is
		return nil
	}
	if c.topo.oneHost() {
		return c.oneHost(p.seq, p.req)
	}
	return c.manyHosts(p.seq, p.req)
}
