package amx

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/lower"
	"ebtrain/ddp/exec/cpu/threads"
)

// correlation is Forward or GradX: a few products over one image and one packed weight.
type correlation struct {
	e       *Engine
	image   image
	weights weights
	list    []product
	flip    bool // the image is the second operand
	dst     int  // floats
	src, w  int
	chunks  int
	o       operands // during Run
	prepare func(chunk int, ws *workspace)
	compute func(chunk int, ws *workspace)
}

// operands are a kernel's buffers during one run.
type operands struct {
	dst, x, w []float32
	image, b  unsafe.Pointer
}

func newCorrelation(e *Engine, op engine.ConvOp, p engine.ConvProblem) *correlation {
	k := &correlation{e: e, chunks: e.chunks()}
	taps, x, y := p.KH*p.KW, p.N*p.H*p.W*p.C, p.N*p.OH*p.OW*p.O
	k.w = p.O * p.C * taps
	if op == engine.Forward {
		k.list, k.dst, k.src = []product{{Product: lower.Forward(p)}}, y, x
		k.image = bordered(p.N, p.H, p.W, p.C, k.list)
		k.weights = weights{columns: p.O, channels: p.C, taps: taps, columnStep: p.C * taps, channelStep: taps}
	} else {
		for _, q := range lower.GradX(p) {
			k.list = append(k.list, product{Product: q})
		}
		k.dst, k.src, k.flip = x, y, true
		k.image = bordered(p.N, p.OH, p.OW, p.O, k.list)
		k.weights = weights{columns: p.C, channels: p.O, taps: taps, columnStep: taps, channelStep: p.C * taps}
	}
	k.weights.place(&k.image, k.list)
	e.growColumns(k.weights.columns)
	k.prepare, k.compute = k.preparePart, k.computePart
	return k
}

func (k *correlation) imageBytes() int { return aligned(k.image.bytes()) }

func (k *correlation) Scratch() int { return k.imageBytes() + k.weights.panels()*k.weights.panel }

func (k *correlation) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	if k.flip {
		a, b = b, a
	}
	k.o = operands{
		dst: unsafe.Slice((*float32)(dst), k.dst), x: unsafe.Slice((*float32)(a), k.src), w: unsafe.Slice((*float32)(b), k.w),
		image: scratch, b: unsafe.Add(scratch, k.imageBytes()),
	}
	k.e.pool.Do(false, k.chunks, k.prepare)
	k.e.pool.Do(false, k.chunks, k.compute)
	k.o = operands{}
	return nil
}

func (k *correlation) Close() error {
	k.e.forget()
	k.e = nil
	return nil
}

// preparePart rounds a part of the image and packs a part of the weight.
func (k *correlation) preparePart(chunk int, ws *workspace) {
	k.image.fill(&k.e.kernels, k.o.image, k.o.x, chunk, k.chunks)
	lo, hi := threads.Part(k.weights.panels(), chunk, k.chunks)
	k.weights.pack(&k.e.kernels, ws, k.o.b, k.o.w, lo, hi)
}

// computePart is a part of the rows of C, or of its panels if those are more.
func (k *correlation) computePart(chunk int, ws *workspace) {
	for i := range k.list {
		p := &k.list[i]
		rows, panels := (p.Rows()+tileRows-1)/tileRows, k.weights.panels()
		m0, m1, p0, p1 := 0, rows, 0, panels
		if rows >= panels/2 {
			m0, m1 = threads.Part(rows, chunk, k.chunks)
		} else {
			p0, p1 = threads.Part(panels/2, chunk, k.chunks)
			p0, p1 = 2*p0, 2*p1
		}
		for pb := p0; pb < p1; pb += panelsBlock {
			k.blocks(ws, p, m0, m1, pb, min(pb+panelsBlock, p1))
		}
	}
}

// blocks computes rows of tiles [m0,m1) of panels [p0,p1).
func (k *correlation) blocks(ws *workspace, p *product, m0, m1, p0, p1 int) {
	if p.steps() == 0 {
		k.zero(p, m0*tileRows, min(m1*tileRows, p.Rows()), p0*lanes, p1*lanes)
		return
	}
	deep := depthBlocks(p.steps())
	for d := range deep {
		lo, hi := threads.Part(p.steps(), d, deep)
		b := block{
			steps: hi - lo, add: lo > 0,
			b: unsafe.Add(k.o.b, p0*k.weights.panel+p.base+lo*tileBytes), bPanel: k.weights.panel, panels: p1 - p0,
		}
		for m := m0 * tileRows; m < min(m1*tileRows, p.Rows()); m += tileRows {
			k.rows(ws, p, b, m, lo, p0*lanes, p1*lanes)
		}
		ws.flush(&k.e.kernels)
	}
}

// zero is a product without a tap.
func (k *correlation) zero(p *product, m0, m1, from, to int) {
	for m := m0; m < m1; m++ {
		row := p.Row(p.Pixel(m))
		clear(k.o.dst[row+from : row+to])
	}
}

// rows computes columns [from,to) of up to 32 rows from m on, from step s on, soon.
func (k *correlation) rows(ws *workspace, p *product, b block, m, s, from, to int) {
	rows := min(tileRows, p.Rows()-m)
	first, second := p.Pixel(m), p.Pixel(min(m+lanes, p.Rows()-1))
	tiles := rows == tileRows && p.inRow(first, lanes) && p.inRow(second, lanes)
	if tiles {
		b.offsets, b.aRow = &p.offsets[s], p.StepW*k.image.pixel()
		b.a[0] = unsafe.Add(k.o.image, p.corner(&k.image, first))
		b.a[1] = unsafe.Add(k.o.image, p.corner(&k.image, second))
	} else {
		ws.flush(&k.e.kernels)
		k.gather(ws, p, &b, first, rows, s)
	}
	if tiles || rows == tileRows && p.evenly() {
		b.cRow = 4 * p.C.Col
		b.c[0], b.c[1] = unsafe.Pointer(&k.o.dst[p.Row(first)+from]), unsafe.Pointer(&k.o.dst[p.Row(second)+from])
		ws.add(&k.e.kernels, b)
		return
	}
	k.beside(ws, p, b, first, rows, from, to)
}

// gather brings rows of A together.
func (k *correlation) gather(ws *workspace, p *product, b *block, a lower.Pixel, rows, s int) {
	b.offsets, b.aRow = &ws.steps[0], gatheredRow
	begin := unsafe.Pointer(&ws.a[0])
	b.a = [2]unsafe.Pointer{begin, unsafe.Add(begin, lanes*gatheredRow)}
	if rows <= lanes {
		b.a[1] = begin
	}
	for r := range rows {
		ws.corners[r] = unsafe.Add(k.o.image, p.corner(&k.image, a))
		a = p.Next(a)
	}
	k.e.kernels.gather(begin, gatheredRow, &ws.corners[0], &p.offsets[s], rows, b.steps)
}

// beside computes gathered rows in memory of the thread's own: they are fewer than 32, or
// not equally far apart.
func (k *correlation) beside(ws *workspace, p *product, b block, a lower.Pixel, rows, from, to int) {
	n := to - from
	b.cRow = 4 * n
	b.c[0] = unsafe.Pointer(&ws.c[0])
	b.c[1] = b.c[0]
	if rows > lanes {
		b.c[1] = unsafe.Pointer(&ws.c[lanes*n])
	}
	if b.add {
		for r, at := 0, a; r < rows; r, at = r+1, p.Next(at) {
			row := p.Row(at)
			copy(ws.c[r*n:(r+1)*n], k.o.dst[row+from:row+to])
		}
	}
	ws.add(&k.e.kernels, b)
	ws.flush(&k.e.kernels)
	for r := range rows {
		row := p.Row(a)
		copy(k.o.dst[row+from:row+to], ws.c[r*n:])
		a = p.Next(a)
	}
}
