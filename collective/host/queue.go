package host

import (
	"context"
	"fmt"
	"math"

	"ebtrain/collective"
)

// item is a collective that was started and is not over.
type item struct {
	seq   uint64
	req   collective.Request
	alloc *allocation // instead of a request, for Alloc
}

// allocation is a call of Alloc.
type allocation struct {
	n   int
	mem []byte // the result
}

// never is the number of a collective that was started after Close.
const never = math.MaxUint64

// queue holds the items in order. Its places are used again and again.
type queue struct {
	ring []item // the item of number seq is at seq % len(ring), a power of two
	done uint64 // collectives that are complete; the number of the head
	next uint64 // of the collective that is started next
}

func (q *queue) empty() bool { return q.done == q.next }

func (q *queue) at(seq uint64) *item { return &q.ring[seq&uint64(len(q.ring)-1)] }

func (q *queue) push(it item) {
	if q.next-q.done == uint64(len(q.ring)) {
		old := *q
		q.ring = make([]item, max(16, 2*len(old.ring)))
		for seq := old.done; seq != old.next; seq++ {
			*q.at(seq) = *old.at(seq)
		}
	}
	*q.at(q.next) = it
	q.next++
}

// pop takes the head, which is complete, out.
func (q *queue) pop() {
	*q.at(q.done) = item{} // lets go of the vector's memory
	q.done++
}

// Start queues req. See collective.Comm. What waits for nobody in a small
// collective is done here, if nothing is before it in the queue: so the other
// ranks need not wait for the runner to wake up.
func (c *Comm) Start(req collective.Request) collective.Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := c.enqueue(item{req: req})
	if c.queue.done == seq && !c.busy && c.quick(req) {
		c.beginHead()
	} else {
		c.signal()
	}
	return collective.NewPending(waiter{c}, ticket(seq, req))
}

// Do is Start and Wait, without waking the runner in between.
func (c *Comm) Do(ctx context.Context, req collective.Request) error {
	c.mu.Lock()
	seq := c.enqueue(item{req: req})
	c.mu.Unlock()
	return waiter{c}.WaitFor(ctx, ticket(seq, req))
}

func ticket(seq uint64, req collective.Request) collective.Ticket {
	return collective.Ticket{Seq: seq, Kind: req.Kind, Label: req.Label}
}

// enqueue gives it its number. c.mu is held.
func (c *Comm) enqueue(it item) uint64 {
	if c.closed {
		return never
	}
	it.seq = c.queue.next
	if c.broken != nil { // nothing will run any more
		c.queue.next++
	} else {
		c.queue.push(it)
	}
	return it.seq
}

// beginHead begins the head of the queue. c.mu is held when it is called and
// when it returns, but not in between.
func (c *Comm) beginHead() {
	it := *c.queue.at(c.queue.done)
	c.busy = true
	c.mu.Unlock()
	c.announce(it)
	c.begin(it.seq, it.req)
	c.mu.Lock()
	c.begun = true
	c.drop()
}

// quick says whether req waits at one barrier only, is well formed, and is
// staged in little time. c.mu is held.
func (c *Comm) quick(req collective.Request) bool {
	return c.broken == nil && c.failed == nil && c.size > 1 && c.topo.oneHost() && req.Check(c.size) == nil &&
		(req.Kind == collective.Barrier || len(req.Vec.Bytes()) <= small)
}

// Alloc returns shared memory. See collective.Comm. It takes its place in the
// order of collectives: all ranks call it between the same two.
func (c *Comm) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: alloc of %d bytes", collective.ErrInvalid, n)
	}
	it := item{alloc: &allocation{n: n}, req: collective.Request{Kind: collective.Allocation, Label: fmt.Sprintf("%d bytes", n)}}
	c.mu.Lock()
	seq := c.enqueue(it)
	c.mu.Unlock()
	if err := c.wait(context.Background(), seq); err != nil {
		return nil, fmt.Errorf("alloc of %d bytes, rank %d: %w", n, c.rank, err)
	}
	return it.alloc.mem, nil
}
