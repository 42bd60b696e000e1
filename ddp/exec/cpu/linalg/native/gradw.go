package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// gradW is the kernel of a weight gradient: for each group,
//
//	dw (O, taps·C) = dyᵀ (O, pixels) · windows of x (pixels, taps·C)
//
// B, the windows, is far too big to be packed at once: each thread packs a
// block of it, depthBlock pixels by columnBlock columns, and uses it at once. The
// columns come out with channels last and are brought into order at the end.
type gradW struct {
	e       *Engine
	p       engine.ConvProblem
	sizes   sizes
	groups  []*windows
	byRows  bool // chunks are rows of dw, else columns
	alone   bool
	o       operands // during Run
	chunks  int
	product func(chunk int, ws *workspace)
	order   func(chunk int, ws *workspace)
}

func newGradW(e *Engine, p engine.ConvProblem) *gradW {
	k := &gradW{e: e, p: p, sizes: convSizes(engine.GradW, p)}
	for g := range p.Groups {
		k.groups = append(k.groups, windowsOfX(p, g))
	}
	k.byRows = k.panels() < 2*e.pool.Threads()
	k.alone = p.Flops()/2 < smallWork
	k.chunks = e.pool.Threads() // more would gather the rows of dyᵀ more often
	if k.alone {
		k.chunks = 1
	}
	k.product, k.order = k.productPart, k.orderPart
	return k
}

func (k *gradW) taps() int    { return k.p.KH * k.p.KW }
func (k *gradW) columns() int { return k.groups[0].k }
func (k *gradW) panels() int  { return (k.columns() + k.e.kernel.NR - 1) / k.e.kernel.NR }

// block is the number of floats of a thread's block of B.
func (k *gradW) block() int {
	return depthBlock * k.e.kernel.NR * min(panelBlock(k.e.kernel), k.panels())
}

// unordered is the number of floats of dw with channels last.
func (k *gradW) unordered() int {
	if k.taps() == 1 {
		return 0 // the order is right already
	}
	return (k.sizes.dst + 15) &^ 15
}

func (k *gradW) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.unordered() + k.e.pool.Threads()*k.block())
}

func (k *gradW) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	k.e.pool.Do(k.alone, k.chunks, k.product)
	if k.taps() > 1 {
		k.e.pool.Do(k.alone, k.chunks, k.order)
	}
	k.o = operands{}
	return nil
}

func (k *gradW) Close() error {
	k.e = nil
	return nil
}

func (k *gradW) productPart(chunk int, ws *workspace) {
	mk := k.e.kernel
	og := k.p.O / k.p.Groups
	m0, m1, p0, p1 := 0, (og+mk.MR-1)/mk.MR, 0, k.panels()
	if k.byRows {
		m0, m1 = threads.Part(m1, chunk, k.chunks)
	} else {
		p0, p1 = threads.Part(p1, chunk, k.chunks)
	}
	if m0 == m1 || p0 == p1 {
		return
	}
	dw := k.o.dst
	if k.taps() > 1 {
		dw = k.o.scratch[:k.sizes.dst]
	}
	block := k.o.scratch[k.unordered()+ws.thread*k.block():][:k.block()]
	for g, v := range k.groups {
		for pb := p0; pb < p1; pb += panelBlock(mk) {
			pe := min(pb+panelBlock(mk), p1)
			k.blockProduct(ws, g, v, dw, block, m0, m1, pb, pe)
		}
	}
}

// blockProduct computes the micro-tiles [m0,m1) × [p0,p1) of one group's dw.
func (k *gradW) blockProduct(ws *workspace, g int, v *windows, dw, block []float32, m0, m1, p0, p1 int) {
	mk, t, og, n := &k.e.kernel, &ws.tile, k.p.O/k.p.Groups, k.columns()
	pixels := k.p.N * k.p.OH * k.p.OW
	dy := matrixColumns{g * og, k.p.O, p1-p0 <= 2} // else a copy is used enough
	c := grid{h: 1, w: og, base: g * og * n, col: n}
	t.Segments, t.BS = 1, mk.NR
	for k0 := 0; k0 < pixels; k0 += depthBlock {
		k1 := min(k0+depthBlock, pixels)
		k.packBlock(ws, v, block, k0, k1, p0, p1)
		t.K, t.Add = k1-k0, k0 > 0
		for mt := m0; mt < m1; mt++ {
			m := mt * mk.MR
			t.Rows = min(mk.MR, og-m)
			dy.place(ws, mk, k.o.b, m, t.Rows, k0, k1)
			first := c.locate(ws, m, t.Rows)
			for i := p0; i < p1; i++ {
				t.B, t.C, t.Cols = block[(i-p0)*(k1-k0)*mk.NR:], dw[first+i*mk.NR:], min(mk.NR, n-i*mk.NR)
				mk.Sum(t)
			}
		}
	}
	ws.forget()
}

// packBlock writes the windows of pixels [k0,k1), columns of panels [p0,p1), into
// panels.
func (k *gradW) packBlock(ws *workspace, v *windows, block []float32, k0, k1, p0, p1 int) {
	nr := k.e.kernel.NR
	row := ws.row[:(p1-p0)*nr]
	width := min(p1*nr, k.columns()) - p0*nr
	clear(row[width:])
	pos := v.Pixel(k0)
	for l := range k1 - k0 {
		v.gather(row[:width], k.o.a, pos, p0*nr)
		pos = v.Next(pos)
		scatter(block[l*nr:], row, nr, (k1-k0)*nr)
	}
}

// scatter writes pieces of nr of row to dst, step apart.
func scatter(dst, row []float32, nr, step int) {
	for i := 0; i < len(row); i, dst = i+nr, dst[min(step, len(dst)):] {
		if nr == 32 {
			*(*[32]float32)(dst) = *(*[32]float32)(row[i:])
			continue
		}
		copy(dst[:nr], row[i:i+nr])
	}
}

// orderPart brings dw from (O, taps, C) to (O, C, taps).
func (k *gradW) orderPart(chunk int, ws *workspace) {
	taps, n := k.taps(), k.columns()
	lo, hi := threads.Part(k.p.O, chunk, k.chunks)
	for o := lo; o < hi; o++ {
		ws.turn.run(k.o.dst[o*n:(o+1)*n], taps, k.o.scratch[o*n:(o+1)*n], n/taps, taps, n/taps)
	}
}
