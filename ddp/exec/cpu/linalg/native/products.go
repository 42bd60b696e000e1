package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/threads"
)

// products is a kernel: a few products over the same operands, all of B
// packed first, then all micro-tiles. If flipped, dst is computed transposed, in
// scratch.
type products struct {
	e       *Engine
	list    []product
	sizes   sizes
	scratch int // floats
	flipped int // rows of the transposed dst, or 0
	alone   bool
	o       operands // during Run
	chunks  int
	pack    func(chunk int, ws *workspace)
	compute func(chunk int, ws *workspace)
	flip    func(chunk int, ws *workspace)
	final   []float32 // during Run: dst, if flipped
}

func newProducts(e *Engine, list []product, s sizes) *products {
	k := &products{e: e, list: list, sizes: s}
	work := 0
	for i := range list {
		k.scratch += list[i].packed(&e.kernel)
		work += list[i].m * list[i].n * list[i].k
	}
	k.alone = work < smallWork
	k.chunks = chunksPerThread * e.pool.Threads()
	if k.alone || e.pool.Threads() == 1 {
		k.chunks = 1
	}
	k.pack, k.compute, k.flip = k.packPart, k.computePart, k.flipPart
	return k
}

func (k *products) Scratch() int { return 4 * k.scratch }

func (k *products) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	final := k.o.dst
	if k.flipped > 0 {
		k.o.dst = k.o.scratch[k.scratch-len(final):]
	}
	k.e.pool.Do(k.alone, k.chunks, k.pack)
	k.e.pool.Do(k.alone, k.chunks, k.compute)
	if k.flipped > 0 {
		k.final = final
		k.e.pool.Do(k.alone, k.chunks, k.flip)
		k.final = nil
	}
	k.o = operands{}
	return nil
}

func (k *products) Close() error {
	k.e = nil
	return nil
}

func (k *products) packPart(chunk int, ws *workspace) {
	mk, buf := &k.e.kernel, k.o.scratch
	for i := range k.list {
		p := &k.list[i]
		_, panels := p.tiles(mk)
		lo, hi := threads.Part(panels, chunk, k.chunks)
		p.packPanels(mk, ws, buf, k.o.b, lo, hi)
		buf = buf[p.packed(mk):]
	}
}

func (k *products) computePart(chunk int, ws *workspace) {
	mk, buf := &k.e.kernel, k.o.scratch
	for i := range k.list {
		p := &k.list[i]
		rows, panels := p.tiles(mk)
		m0, m1, p0, p1 := 0, rows, 0, panels
		if rows >= panels {
			m0, m1 = threads.Part(rows, chunk, k.chunks)
		} else {
			p0, p1 = threads.Part(panels, chunk, k.chunks)
		}
		p.microTiles(mk, ws, k.o, buf, m0, m1, p0, p1)
		buf = buf[p.packed(mk):]
	}
}

// flipPart brings columns of the transposed result into rows of dst.
func (k *products) flipPart(chunk int, ws *workspace) {
	rows, cols := k.flipped, len(k.final)/k.flipped
	lo, hi := threads.Part(rows, chunk, k.chunks)
	ws.turn.run(k.final[lo:], rows, k.o.dst[lo*cols:], cols, hi-lo, cols)
}
