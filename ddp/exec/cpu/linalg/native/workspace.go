package native

import "ebtrain/ddp/exec/cpu/linalg/micro"

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	a      []float32        // one tile's rows of A, kBlock deep
	row    []float32        // one row of gathered image windows
	off    [micro.MaxMR]int // where the tile's rows of C begin
}

func newWorkspace(t micro.Kernel, thread int) *workspace {
	return &workspace{thread: thread, a: micro.Aligned(t.MR * rowStride), row: micro.Aligned(panelBlock(t) * t.NR)}
}
