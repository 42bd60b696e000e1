package native

import "ebtrain/ddp/exec/cpu/tile"

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	a      []float32       // one tile's rows of A, kBlock deep
	row    []float32       // one row of gathered image windows
	off    [tile.MaxMR]int // where the tile's rows of C begin
}

func newWorkspace(t tile.Kernel, thread int) *workspace {
	return &workspace{thread: thread, a: tile.Aligned(t.MR * rowStride), row: tile.Aligned(panelBlock(t) * t.NR)}
}
