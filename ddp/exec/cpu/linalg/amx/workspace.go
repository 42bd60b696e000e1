package amx

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
)

const (
	// stepsBlock is the most depth, in steps, after which sums go to memory: the rows
	// of A stay in the first cache.
	stepsBlock = 18
	// panelsBlock is how many panels are worked on at a time: B, stepsBlock deep,
	// stays in the second cache.
	panelsBlock = 32
	// gatheredRow is the bytes from one gathered row of A to the next: not a power of
	// two, or rows would compete for the same cache lines.
	gatheredRow = stepsBlock*rowBytes + rowBytes
	// windowsPanel is the bytes from one panel of windows to the next, for the same
	// reason.
	windowsPanel = stepsBlock*tileBytes + rowBytes
)

// depthBlocks is into how many nearly equal blocks so many steps are cut.
func depthBlocks(steps int) int { return (steps + stepsBlock - 1) / stepsBlock }

// workspace is the private memory of a thread.
type workspace struct {
	queue   [8]block // to be multiplied at once: to start takes a tenth of a microsecond
	queued  int
	steps   [stepsBlock]int           // offsets of the steps of gathered rows
	tiles   [stepsBlock]int           // offsets of the steps of tiles
	panels  [panelsBlock]int          // places of panels of windows
	corners [tileRows]unsafe.Pointer  // of the windows that are gathered
	columns [2][lanes * lanes]float32 // transposed
	a       []float32                 // gathered rows of A
	b       []float32                 // panels of windows
	c       []float32                 // rows of C that cannot be written in place
	pixels  []float32                 // a step of dy as bfloat16s
	pairs   []float32                 // the same, interleaved
}

func newWorkspace() *workspace {
	ws := &workspace{a: micro.Aligned(tileRows * gatheredRow / 4)}
	for i := range stepsBlock {
		ws.steps[i], ws.tiles[i] = i*rowBytes, i*tileBytes
	}
	for i := range panelsBlock {
		ws.panels[i] = i * windowsPanel
	}
	return ws
}

// growColumns makes room in all workspaces for rows of C of so many columns.
func (e *Engine) growColumns(n int) {
	e.pool.Each(func(ws *workspace) { grow(&ws.c, tileRows*min(n, panelsBlock*lanes)) })
}

// growWindows makes room for so many pairs of panels of windows, and for pixels of dy of
// so many filters.
func (e *Engine) growWindows(pairs, filters int) {
	e.pool.Each(func(ws *workspace) {
		grow(&ws.b, 2*pairs*windowsPanel/4)
		grow(&ws.pixels, stepDepth*filters/2)
		grow(&ws.pairs, stepDepth*filters/2)
	})
}

func grow(v *[]float32, n int) {
	if n > len(*v) {
		*v = micro.Aligned(n)
	}
}

// add has a block multiplied before the next flush ends.
func (ws *workspace) add(k *kernels, b block) {
	ws.queue[ws.queued] = b
	if ws.queued++; ws.queued == len(ws.queue) {
		ws.flush(k)
	}
}

// flush multiplies what is queued.
func (ws *workspace) flush(k *kernels) {
	if ws.queued > 0 {
		k.multiply(&ws.queue[0], ws.queued)
		ws.queued = 0
	}
}

// forget drops the addresses of a kernel's memory.
func (ws *workspace) forget() {
	clear(ws.queue[:])
	clear(ws.corners[:])
}
