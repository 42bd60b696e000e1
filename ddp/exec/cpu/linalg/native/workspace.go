package native

import "ebtrain/ddp/exec/cpu/linalg/micro"

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	tile   micro.Tile       // the micro-tile under way
	a      []float32        // its rows of A, up to maxDepth deep
	row    []float32        // one row of gathered image windows
	off    [micro.MaxMR]int // where its rows of C begin
	apart  int              // how far from each other, if they are as spread left them
	turn   transposer
}

func newWorkspace(mk micro.Kernel, thread int) *workspace {
	ws := &workspace{thread: thread, a: micro.Aligned(max(mk.MR, mk.Tall) * rowStride), row: micro.Aligned(panelBlock(mk) * mk.NR), turn: newTransposer(mk)}
	ws.tile.Off = &ws.off
	return ws
}

// forget drops the addresses of operands: their memory is not a thread's to keep.
func (ws *workspace) forget() { ws.tile.A, ws.tile.B, ws.tile.C = nil, nil, nil }

// spread has rows of C begin so far apart.
func (ws *workspace) spread(apart int) {
	if ws.apart == apart {
		return
	}
	ws.apart = apart
	for r := range ws.off {
		ws.off[r] = r * apart
	}
}
