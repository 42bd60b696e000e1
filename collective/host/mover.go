package host

import (
	"context"

	"ebtrain/collective"
)

// mover moves the data of one collective at a time, for one goroutine at a time,
// and knows nothing of those before and behind it. An error of it is the end of
// the group. Requests are well formed.
type mover interface {
	// quick says whether begin of req takes little time, and finish one barrier.
	quick(req collective.Request) bool
	// count says whether subnormal numbers count as zeros in the next collective.
	count(zeros bool)
	// begin is the part of a collective in which nobody waits.
	begin(seq uint64, req collective.Request)
	// finish is the rest. If ctx ends first, it ends the group.
	finish(ctx context.Context, req collective.Request) error
	// alloc is a collective, too, and this rank's part of the memory.
	alloc(ctx context.Context, seq uint64, n int) (collective.Vec, error)
	// unmap frees the memory of all allocs. Nothing may follow.
	unmap() error
}

func newMover(m *meeting) mover {
	switch {
	case m.topo.size == 1:
		return loneMover{m}
	case m.topo.oneHost():
		return hostMover{m}
	}
	return &netMover{meeting: m}
}

// loneMover is the mover of a group of one: every collective of one rank leaves
// its vector as it is.
type loneMover struct{ *meeting }

func (loneMover) quick(collective.Request) bool                    { return false }
func (loneMover) begin(uint64, collective.Request)                 {}
func (loneMover) finish(context.Context, collective.Request) error { return nil }

func (m loneMover) alloc(_ context.Context, _ uint64, n int) (collective.Vec, error) {
	return m.keep(privateSegment(n))
}
