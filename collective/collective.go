// Package collective defines ranks and what they do together.
//
// A Comm is one rank's end of a group of Size ranks. Every rank issues the
// same collectives in the same order; each collective moves or reduces a Vec
// in place. Implementations: host (shared memory within a host, TCP between
// hosts), nccl, and cuda/staged (a GPU's vectors by way of host). All pass the
// suite in colltest.
//
// Invariants:
//   - Collectives complete in the order they were started, on every rank.
//   - A difference between ranks (kind, reduction, element type, length,
//     root, or order) is an error on every rank, never a hang and never a
//     silent wrong answer.
//   - After the first failure the group is aborted: every pending and later
//     call on every rank returns an *Error wrapping ErrAborted (or the more
//     specific cause). Half a collective does not exist.
//   - Reductions are deterministic: the same inputs on the same number of
//     ranks give the same bits, and every rank gets the same bits.
//
// Concurrency: Start, Abort, Alloc and Close may be called from any
// goroutine, but a program whose goroutines race to Start has no order, so
// one goroutine at a time should call Start. Abort may be called at any time.
package collective

import "context"

// Comm is one rank's end of a group.
type Comm interface {
	// Rank is this process's number, 0 ≤ Rank < Size.
	Rank() int
	// Size is the number of ranks in the group.
	Size() int

	// Alloc returns n bytes as a Vec of U8, zeroed and aligned to 64 bytes, that
	// collectives reduce where they lie, without copies: in host memory, or in
	// that of the device whose ranks the Comm connects, which no Go code can
	// touch. Vec.As gives parts of it a type. All ranks call Alloc in the same
	// order, also relative to Start, with the same n; Alloc waits for all of
	// them. The memory lives until Close. When the group has failed, other ranks
	// may still be at the collective that failed, and change what is there, also
	// after the Pending is done.
	Alloc(n int) (Vec, error)

	// Start queues one collective and returns at once; it never waits for
	// other ranks, and in the long run it allocates nothing. The memory of
	// req.Vec belongs to the collective until the returned Pending is done. A
	// malformed request is reported by Wait.
	Start(req Request) Pending

	// Abort ends the group on every rank that can be reached: everything
	// pending and everything later fails with cause. It is idempotent; the
	// first cause is kept.
	Abort(cause error)

	// Close releases the group's memory and connections. It waits for nothing
	// but this rank's own goroutines, and may be called more than once.
	// Closing with collectives pending aborts the group.
	Close() error
}

// Kind is what a collective does.
type Kind uint8

const (
	// Barrier moves no data: it is done when every rank has started it.
	Barrier Kind = iota + 1
	// AllReduce replaces every rank's Vec by the element-wise reduction of all.
	AllReduce
	// ReduceScatter cuts Vec into Size equal parts and leaves the reduction of
	// part r in part r of rank r's Vec; the other parts are then undefined.
	// Vec.Len must be divisible by Size.
	ReduceScatter
	// AllGather copies part r of rank r's Vec to part r of every rank's Vec.
	// Vec.Len must be divisible by Size.
	AllGather
	// Broadcast copies Root's Vec to every rank.
	Broadcast

	// Allocation is what Comm.Alloc is called in errors, progress and the
	// flight recorder. It is not a Request.
	Allocation Kind = 255
)

// Op is how AllReduce and ReduceScatter combine elements.
type Op uint8

const (
	Sum Op = iota + 1
	// Mean is Sum divided by Size, rounded once; floating-point types only.
	Mean
	Max
	Min
)

// Request is one collective.
type Request struct {
	Kind Kind
	Op   Op  // AllReduce and ReduceScatter only
	Root int // Broadcast only
	Vec  Vec
	// Label says what is moved, for people: "generator/bucket 3". It appears
	// in errors and in the flight recorder, and is not compared across ranks.
	Label string
}

// Do runs one collective and waits for it.
func Do(ctx context.Context, c Comm, req Request) error {
	if d, ok := c.(Doer); ok {
		return d.Do(ctx, req)
	}
	return c.Start(req).Wait(ctx)
}

// Doer is a Comm that gains by knowing at Start that the caller will wait at
// once.
type Doer interface {
	// Do is Start and Wait.
	Do(ctx context.Context, req Request) error
}
