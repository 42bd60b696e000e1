package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// workspace is the private memory of a thread. Vectors in it are aligned to 64
// bytes: one across two cache lines costs two accesses.
type workspace struct {
	thread  int
	pass    pass
	scaling rowScaling
	rows    [6]unsafe.Pointer
	tmp     *[tmpLen]float32
	taps    []float32 // of maxVectors × 16 filters, each up to 16
	edge    []float32 // a tile of results that is partly outside
	zeros   []float32
	off     [micro.MaxMR]int // rows of a micro-tile of products
}

func newWorkspace(width, thread int) *workspace {
	ws := &workspace{thread: thread, tmp: (*[tmpLen]float32)(micro.Aligned(tmpLen)), taps: micro.Aligned(maxVectors * lanes * lanes), edge: micro.Aligned(4 * 4 * width)}
	for i := range ws.off {
		ws.off[i] = i * width
	}
	return ws
}

// forget drops the addresses of a kernel's memory.
func (ws *workspace) forget() {
	ws.pass, ws.scaling, ws.rows = pass{}, rowScaling{}, [6]unsafe.Pointer{}
}
