package collective

import (
	"errors"
	"fmt"
)

var (
	// ErrAborted means the group was ended by a rank, a peer's death, or Abort.
	ErrAborted = errors.New("collective: group aborted")
	// ErrOwnAbort means that it was this rank which ended the group, for a reason of its own.
	ErrOwnAbort = errors.New("collective: aborted by this rank")
	// ErrClosed means this rank has closed its Comm.
	ErrClosed = errors.New("collective: communicator closed")
	// ErrMismatch means the ranks did not start the same collective.
	ErrMismatch = errors.New("collective: ranks disagree")
	// ErrPeerLost means a peer's process or connection is gone.
	ErrPeerLost = errors.New("collective: peer lost")
	// ErrInvalid means this rank's request was malformed; see Request.Check.
	ErrInvalid = errors.New("collective: malformed request")
)

// Error is a collective that did not complete.
type Error struct {
	Kind  Kind
	Label string
	Seq   uint64 // number of the collective in its group, from 0
	Rank  int    // the rank that reports
	Peer  int    // the rank at fault, -1 if not known
	Err   error  // wraps one of the sentinels above
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s, seq %d, rank %d", e.Kind, e.Label, e.Seq, e.Rank)
	if e.Peer >= 0 {
		s += fmt.Sprintf(" (peer %d)", e.Peer)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

func (k Kind) String() string {
	switch k {
	case Barrier:
		return "barrier"
	case AllReduce:
		return "all-reduce"
	case ReduceScatter:
		return "reduce-scatter"
	case AllGather:
		return "all-gather"
	case Broadcast:
		return "broadcast"
	case Allocation:
		return "alloc"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Mean:
		return "mean"
	case Max:
		return "max"
	case Min:
		return "min"
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}
