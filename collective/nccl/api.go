package nccl

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// api is libnccl: a method per function that is called. An int that is returned
// alone or last is the ncclResult_t. The device's context is current.
type api interface {
	version() (version, code int)
	uniqueID() (id [idBytes]byte, code int)
	init(ranks int, id [idBytes]byte, rank int) (comm uintptr, code int)
	state(comm uintptr) (state, code int)
	text(code int) string
	last(comm uintptr) string
	finalize(comm uintptr) int
	destroy(comm uintptr) int
	abort(comm uintptr) int

	allReduce(comm uintptr, p cuda.Ptr, n, dtype, op int, stream uintptr) int
	reduceScatter(comm uintptr, from, to cuda.Ptr, n, dtype, op int, stream uintptr) int
	allGather(comm uintptr, from, to cuda.Ptr, n, dtype int, stream uintptr) int
	broadcast(comm uintptr, p cuda.Ptr, n, dtype, root int, stream uintptr) int
	exchange(comm uintptr, ts []transfer, dtype int, stream uintptr) (call string, code int)

	memAlloc(bytes int) (cuda.Ptr, int)
	memFree(p cuda.Ptr) int
	register(comm uintptr, p cuda.Ptr, bytes int) (registration uintptr, code int)
	deregister(comm, registration uintptr) int
}

const idBytes = 128

// transfer is a send or a receive of a group. One of no elements is left out.
type transfer struct {
	p    cuda.Ptr
	n    int // elements
	peer int
	out  bool
}

// Results.
const (
	success    = 0
	inProgress = 7
)

// Element types and reductions, as NCCL numbers them.
var (
	dtypes = map[collective.DType]int{
		collective.U8: 1, collective.I32: 2, collective.I64: 4, collective.F32: 7, collective.F64: 8, collective.BF16: 9,
	}
	// Mean is a sum, and one division of ours: NCCL's average multiplies first, and
	// rounds as often as there are ranks.
	reductions = map[collective.Op]int{collective.Sum: 0, collective.Mean: 0, collective.Max: 2, collective.Min: 3}
)

// Error is a call of NCCL that failed, or what a communicator came to while
// nobody called.
type Error struct {
	Call string // the function, as its header calls it
	Code int    // ncclResult_t
	Text string // what the code means
	Last string // what NCCL says went wrong last; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("nccl: %s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Last != "" {
		s += ": " + e.Last
	}
	return s + "; NCCL_DEBUG=INFO says more"
}
