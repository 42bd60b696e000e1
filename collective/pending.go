package collective

import "context"

// Pending is a collective under way: a ticket, not an object. It holds who was
// asked and which collective it was, and nothing that the Comm could use again
// for another one. So it may be copied, kept, waited for any number of times
// and by any goroutine, also after Close, and costs no memory.
//
// The zero Pending is no collective: Wait panics.
type Pending struct {
	waiter Waiter
	ticket Ticket
}

// Ticket says which collective of a Comm is meant. Kind and Label are for
// errors.
type Ticket struct {
	Seq   uint64 // number of the collective in its Comm, from 0
	Kind  Kind
	Label string
}

// Waiter is what an implementation of Comm puts behind a Pending.
type Waiter interface {
	// WaitFor does what Pending.Wait promises for the collective t.
	WaitFor(ctx context.Context, t Ticket) error
}

// NewPending is the collective t of w.
func NewPending(w Waiter, t Ticket) Pending { return Pending{w, t} }

// Wait blocks until the collective is complete on this rank, or the group is
// aborted, or ctx ends. A collective cannot be abandoned by one rank alone, so
// when ctx ends first Wait aborts the group with its cause. A collective that
// is complete stays complete, whatever happens afterwards.
func (p Pending) Wait(ctx context.Context) error { return p.waiter.WaitFor(ctx, p.ticket) }
