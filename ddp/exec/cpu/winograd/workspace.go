package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/tile"
)

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	pass   pass
	scale  rows
	rows   [6]unsafe.Pointer
	tmp    [tmpLen]float32
	taps   [maxBlocks * lanes * lanes]float32 // of maxBlocks × 16 filters, each up to 16
	edge   [4 * 4 * maxWidth]float32          // a tile of results that is partly outside
	zeros  []float32
	off    [tile.MaxMR]int // rows of a tile of products
}

// maxWidth is the widest panel of all instruction sets.
const maxWidth = 32

func newWorkspace(width, thread int) *workspace {
	ws := &workspace{thread: thread}
	for i := range ws.off {
		ws.off[i] = i * width
	}
	return ws
}
