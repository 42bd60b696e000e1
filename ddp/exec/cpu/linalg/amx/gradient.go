package amx

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/lower"
	"ebtrain/ddp/exec/cpu/threads"
)

// gradient is GradW: dw (O, columns) = dyᵀ (O, pixels) · windows of x (pixels, columns).
// Both operands are brought into tiles by interleaving neighbours in depth, pixels:
// 32 channels of two pixels become a row of even channels and one of odd ones.
//
//	dyᵀ   of 32 filters, two tiles for each step of pixels, all at once
//	x     of 32 channels of a tap, two panels; stepsBlock steps at a time, as wanted
//
// The sums are (O, two panels for each 32 channels of a tap, 16), and brought into dw's
// order at the end. Where x is a matrix as it lies, its panels are of neighbouring
// channels, and the sums are dw.
type gradient struct {
	e       *Engine
	p       engine.ConvProblem
	image   image
	windows product
	offsets []int // by 32 channels and tap, from a window's corner
	filters []int // of 32 filters each, in a pixel of dy
	flip    bool  // dy is the first operand
	plain   bool  // windows are rows of x as they lie: no image is wanted, and sums are in order
	chunks  int
	parts   int              // chunks of panels
	o       gradientOperands // during Run
	prepare func(chunk int, ws *workspace)
	compute func(chunk int, ws *workspace)
	order   func(chunk int, ws *workspace)
}

// gradientOperands are a kernel's buffers during one run.
type gradientOperands struct {
	dw, x, dy       []float32
	dyT, image, sum unsafe.Pointer
}

func newGradient(e *Engine, p engine.ConvProblem) *gradient {
	k := &gradient{e: e, p: p, chunks: e.chunks(), windows: product{Product: lower.Forward(p)}}
	k.plain = isPlain(p)
	k.image = bordered(p.N, p.H, p.W, p.C, []product{k.windows})
	for c := 0; c < p.C; c += stepDepth {
		for _, t := range k.windows.Taps {
			k.offsets = append(k.offsets, (t.DH*k.image.pw+t.DW)*k.image.pixel()+2*c)
		}
	}
	for f := 0; f < p.O; f += tileRows {
		k.filters = append(k.filters, 2*f)
	}
	n := len(k.offsets)
	each := min(panelsBlock/2, (n+k.chunks-1)/k.chunks)
	k.parts = (n + each - 1) / each
	e.growWindows(each, p.O)
	k.prepare, k.compute, k.order = k.preparePart, k.computePart, k.orderPart
	return k
}

func (k *gradient) taps() int   { return k.p.KH * k.p.KW }
func (k *gradient) pixels() int { return k.p.N * k.p.OH * k.p.OW }

// steps is how many steps there are over all pixels, the last one filled up with zeros.
func (k *gradient) steps() int { return (k.pixels() + stepDepth - 1) / stepDepth }

// sumRow is the bytes of the sums of a filter.
func (k *gradient) sumRow() int { return 2 * len(k.offsets) * rowBytes }

func (k *gradient) dyTBytes() int { return k.p.O / lanes * k.steps() * tileBytes }

func (k *gradient) Scratch() int {
	if k.plain {
		return k.dyTBytes()
	}
	return k.dyTBytes() + aligned(k.image.bytes()) + k.p.O*k.sumRow()
}

func (k *gradient) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	if k.flip {
		a, b = b, a
	}
	p := &k.p
	k.o = gradientOperands{
		dw:  unsafe.Slice((*float32)(dst), p.O*p.C*k.taps()),
		x:   unsafe.Slice((*float32)(a), p.N*p.H*p.W*p.C),
		dy:  unsafe.Slice((*float32)(b), k.pixels()*p.O),
		dyT: scratch,
		sum: dst,
	}
	if !k.plain { // or dyT is all of the scratch memory, and no pointer may lie behind it
		k.o.image = unsafe.Add(scratch, k.dyTBytes())
		k.o.sum = unsafe.Add(k.o.image, aligned(k.image.bytes()))
	}
	k.e.pool.Do(false, k.chunks, k.prepare)
	k.e.pool.Do(false, k.parts, k.compute)
	if !k.plain {
		k.e.pool.Do(false, k.chunks, k.order)
	}
	k.o = gradientOperands{}
	return nil
}

func (k *gradient) Close() error {
	k.e.forget()
	k.e = nil
	return nil
}

// preparePart rounds a part of x, and brings a part of dy into tiles.
func (k *gradient) preparePart(chunk int, ws *workspace) {
	if !k.plain {
		k.image.fill(&k.e.kernels, k.o.image, k.o.x, chunk, k.chunks)
	}
	lo, hi := threads.Part(k.steps(), chunk, k.chunks)
	for s := lo; s < hi; s++ {
		k.transpose(ws, s)
	}
}

// transpose makes the tiles of dyᵀ of step s.
func (k *gradient) transpose(ws *workspace, s int) {
	o, kernels := k.p.O, &k.e.kernels
	pixels := min(stepDepth, k.pixels()-s*stepDepth)
	rows := unsafe.Pointer(&ws.pixels[0]) // 32 pixels of bfloat16s
	kernels.round(rows, &k.o.dy[s*stepDepth*o], pixels*o/lanes)
	clear(unsafe.Slice((*uint16)(rows), stepDepth*o)[pixels*o:])
	pairs := unsafe.Pointer(&ws.pairs[0]) // words of two pixels: (filters, 2, 16 pairs, 16)
	for i := range stepDepth / 2 {
		first := unsafe.Add(rows, i*4*o)
		kernels.interleave(unsafe.Add(pairs, i*rowBytes), tileBytes, 2*tileBytes, first, unsafe.Add(first, 2*o), &k.filters[0], len(k.filters))
	}
	for i := range 2 * len(k.filters) {
		tile := (*float32)(unsafe.Add(k.o.dyT, (i*k.steps()+s)*tileBytes))
		kernels.transpose.Columns(tile, (*float32)(unsafe.Add(pairs, i*tileBytes)), lanes, lanes)
	}
}

// computePart is the sums of a part of the panels.
func (k *gradient) computePart(part int, ws *workspace) {
	q0, q1 := threads.Part(len(k.offsets), part, k.parts)
	windows := unsafe.Pointer(&ws.b[0])
	deep := depthBlocks(k.steps())
	for d := range deep {
		lo, hi := threads.Part(k.steps(), d, deep)
		k.pack(ws, lo*stepDepth, (hi-lo)*stepDepth/2, q0, q1)
		for f := range k.filters {
			even := unsafe.Add(k.o.dyT, (2*f*k.steps()+lo)*tileBytes)
			sums := unsafe.Add(k.o.sum, f*tileRows*k.sumRow()+2*q0*rowBytes)
			ws.add(&k.e.kernels, block{
				steps: hi - lo, add: lo > 0, offsets: &ws.tiles[0],
				a: [2]unsafe.Pointer{even, unsafe.Add(even, k.steps()*tileBytes)}, aRow: rowBytes,
				b: windows, bPanel: windowsPanel, panels: 2 * (q1 - q0),
				c: [2]unsafe.Pointer{sums, unsafe.Add(sums, k.sumRow())}, cRow: 2 * k.sumRow(),
			})
		}
		ws.flush(&k.e.kernels)
	}
}

// pack writes so many pairs of pixels of pairs of panels [q0,q1).
func (k *gradient) pack(ws *workspace, pixel, pairs, q0, q1 int) {
	a := k.windows.Pixel(pixel)
	for i := range pairs {
		row := unsafe.Pointer(&ws.b[i*rowBytes/4])
		p := pixel + 2*i
		missing := min(max(p+2-k.pixels(), 0), 2)
		if missing == 2 {
			clearRows(row, 2*(q1-q0), 1)
			continue
		}
		if k.plain {
			first := k.o.x[p*k.p.C+q0*stepDepth:]
			k.e.kernels.pairs(row, &ws.panels[0], &first[0], &first[k.p.C*(1-missing)], 4*lanes, 2*(q1-q0))
		} else {
			a = k.packWindows(row, a, 1-missing, k.offsets[q0:q1])
		}
		if missing == 1 {
			clearRows(row, 2*(q1-q0), 2)
		}
	}
}

// packWindows writes a row of the window at a pixel and of that further on, and returns
// the next pixel.
func (k *gradient) packWindows(row unsafe.Pointer, a lower.Pixel, further int, offsets []int) lower.Pixel {
	first := unsafe.Add(k.o.image, k.windows.corner(&k.image, a))
	if further > 0 {
		a = k.windows.Next(a)
	}
	second := unsafe.Add(k.o.image, k.windows.corner(&k.image, a))
	k.e.kernels.interleave(row, windowsPanel, 2*windowsPanel, first, second, &offsets[0], len(offsets))
	return k.windows.Next(a)
}

// clearRows clears a row of all panels: both pixels of it, or the second.
func clearRows(row unsafe.Pointer, panels, pixel int) {
	for q := range panels {
		words := (*[2 * lanes]uint16)(unsafe.Add(row, q*windowsPanel))
		for i := pixel - 1; i < len(words); i += pixel {
			words[i] = 0
		}
	}
}

// orderPart brings sums into dw's order.
func (k *gradient) orderPart(chunk int, ws *workspace) {
	taps, groups := k.taps(), k.p.C/stepDepth
	columns := &ws.columns[0]
	lo, hi := threads.Part(k.p.O*groups, chunk, k.chunks)
	for i := lo; i < hi; i++ {
		for half := range 2 { // even channels, odd ones
			dw := k.o.dw[(i*stepDepth+half)*taps:]
			for t := 0; t < taps; t += lanes {
				n := min(lanes, taps-t)
				for j := range n {
					*(*[lanes]float32)(columns[j*lanes:]) = *(*[lanes]float32)(unsafe.Add(k.o.sum, (2*(i*taps+t+j)+half)*rowBytes))
				}
				k.e.kernels.transpose.Rows(&dw[t], 2*taps, &columns[0], n)
			}
		}
	}
}
