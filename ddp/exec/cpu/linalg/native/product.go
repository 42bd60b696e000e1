package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/threads"
)

const (
	// depthBlock is the depth of a block of sums: the rows of A of a
	// micro-tile (12×256 floats) stay in the first cache, a block of B in the second.
	depthBlock = 256
	// rowStride is the distance of rows in the buffer of A: not a power
	// of two, or rows would compete for the same cache lines.
	rowStride = depthBlock + 16
	// columnBlock is how many columns of B are worked on at a time.
	columnBlock = 1024
	// chunksPerThread is into how many pieces per thread work is cut.
	chunksPerThread = 4
	// smallWork is the number of multiply-adds below which threads do not pay.
	smallWork = 1 << 19
)

func panelBlock(mk micro.Kernel) int { return columnBlock / mk.NR }

// rowSource is the operand A.
type rowSource interface {
	// fill writes A[m:m+rows, k0:k1] into dst and returns its strides. It
	// may write mr rows.
	fill(dst []float32, data []float32, m, rows, k0, k1 int) (rs, ks int)
}

// product is C (m,n) = A (m,k) · B (k,n), with rows of C anywhere.
type product struct {
	m, n, k int
	a       rowSource
	b       columns
	c       grid
}

func (p *product) panels(mk micro.Kernel) int { return (p.n + mk.NR - 1) / mk.NR }

// packed is the number of floats of all of B in panels.
func (p *product) packed(mk micro.Kernel) int { return (p.panels(mk)*mk.NR*p.k + 15) &^ 15 }

// packPanels writes panels [lo,hi) of B, panel j to packed[j·k·nr:].
func (p *product) packPanels(mk micro.Kernel, packed, b []float32, lo, hi int) {
	for j := lo; j < hi; j++ {
		p.b.pack(packed[j*p.k*mk.NR:(j+1)*p.k*mk.NR], b, j*mk.NR, min(mk.NR, p.n-j*mk.NR), mk.NR)
	}
}

// microTiles computes the micro-tiles [m0,m1) × [p0,p1) of C from packed B: panel p
// begins at p·k·nr and holds k rows of nr.
func (p *product) microTiles(mk micro.Kernel, ws *workspace, o operands, packed []float32, m0, m1, p0, p1 int) {
	if p.k == 0 {
		p.zero(mk, ws, o.dst, m0, m1, p0, p1)
		return
	}
	for pb := p0; pb < p1; pb += panelBlock(mk) {
		pe := min(pb+panelBlock(mk), p1)
		for k0 := 0; k0 < p.k; k0 += depthBlock {
			k1 := min(k0+depthBlock, p.k)
			for mt := m0; mt < m1; mt++ {
				m := mt * mk.MR
				rows := min(mk.MR, p.m-m)
				rs, ks := p.a.fill(ws.a, o.a, m, rows, k0, k1)
				for i := pb; i < pe; i++ {
					p.c.locate(&ws.off, m, rows, i*mk.NR)
					mk.Run(k1-k0, ws.a, rs, ks, packed[(i*p.k+k0)*mk.NR:], o.dst, &ws.off, rows, min(mk.NR, p.n-i*mk.NR), k0 > 0)
				}
			}
		}
	}
}

// zero is the product over no k.
func (p *product) zero(mk micro.Kernel, ws *workspace, dst []float32, m0, m1, p0, p1 int) {
	for m := m0 * mk.MR; m < min(m1*mk.MR, p.m); m++ {
		p.c.locate(&ws.off, m, 1, 0)
		clear(dst[ws.off[0]+p0*mk.NR : ws.off[0]+min(p1*mk.NR, p.n)])
	}
}

// grid says where rows of C begin: row m is pixel (i,j) of image n, in
// row-major order over (n,i,j).
type grid struct {
	h, w                  int // pixels of an image
	base, image, row, col int // steps in C
}

// locate writes the beginnings of rows m … m+rows-1, plus shift, to off.
func (g grid) locate(off *[micro.MaxMR]int, m, rows, shift int) {
	n, i, j := m/(g.h*g.w), m/g.w%g.h, m%g.w
	for r := range rows {
		off[r] = shift + g.base + n*g.image + i*g.row + j*g.col
		if j++; j == g.w {
			j = 0
			if i++; i == g.h {
				i = 0
				n++
			}
		}
	}
}

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
}

func newProducts(e *Engine, list []product, s sizes) *products {
	k := &products{e: e, list: list, sizes: s}
	work := 0
	for i := range list {
		k.scratch += list[i].packed(e.kernel)
		work += list[i].m * list[i].n * list[i].k
	}
	k.alone = work < smallWork
	k.chunks = chunksPerThread * e.pool.Threads()
	if k.alone || e.pool.Threads() == 1 {
		k.chunks = 1
	}
	k.pack, k.compute = k.packPart, k.computePart
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
		transpose(final, k.o.dst, k.flipped, len(final)/k.flipped)
	}
	k.o = operands{}
	return nil
}

func (k *products) Close() error {
	k.e = nil
	return nil
}

func (k *products) packPart(chunk int, _ *workspace) {
	mk, buf := k.e.kernel, k.o.scratch
	for i := range k.list {
		p := &k.list[i]
		lo, hi := threads.Part(p.panels(mk), chunk, k.chunks)
		p.packPanels(mk, buf, k.o.b, lo, hi)
		buf = buf[p.packed(mk):]
	}
}

func (k *products) computePart(chunk int, ws *workspace) {
	mk, buf := k.e.kernel, k.o.scratch
	for i := range k.list {
		p := &k.list[i]
		rows, panels := (p.m+mk.MR-1)/mk.MR, p.panels(mk)
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
