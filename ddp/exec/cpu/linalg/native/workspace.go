package native

import "ebtrain/ddp/exec/cpu/linalg/micro"

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	a      []float32        // the rows of A of a micro-tile, depthBlock deep
	row    []float32        // one row of gathered image windows
	off    [micro.MaxMR]int // where its rows of C begin
}

func newWorkspace(mk micro.Kernel, thread int) *workspace {
	return &workspace{thread: thread, a: micro.Aligned(mk.MR * rowStride), row: micro.Aligned(panelBlock(mk) * mk.NR)}
}
