package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// directW is a weight gradient that packs nothing, by bands of x (type band) and with dy as
// it lies:
//
//	dwᵀ (taps·C, O) = Σ_bands windows of xᵀ (taps·C, pixels) · dy (pixels, O)
//
// The depth of a micro-tile is all pixels of a band. Bands are dealt out to a number of
// parts of the sum that depends on the geometry alone; threads compute parts, which are
// added up in their order. Then dwᵀ is brought into the order of dw.
type directW struct {
	e       *Engine
	p       engine.ConvProblem
	sizes   sizes
	band    band
	parts   int
	private int // floats of a thread's band
	alone   bool
	chunks  int
	o       operands // during Run
	product func(part int, ws *workspace)
	sum     func(chunk int, ws *workspace)
	order   func(chunk int, ws *workspace)
}

const (
	// mostParts is how many parts of a sum there are where dw is small, and partBytes the
	// size of all of them where it is not.
	mostParts, partBytes = 32, 4 << 20
	// leastParts keep a few threads busy.
	leastParts = 4
	// partDepth is the least number of pixels of a part, beside which to add up parts is
	// little.
	partDepth = 2048
	// bandPixels is about how many pixels of dy a band has, so that those of a panel stay
	// in the first cache.
	bandPixels = 256
	// rowPixels is how many pixels of a row are enough.
	rowPixels = 64
)

// newDirectW is nil where windows have to be gathered, or dw is too big for parts.
func newDirectW(e *Engine, p engine.ConvProblem) *directW {
	k := &directW{e: e, p: p, sizes: convSizes(engine.GradW, p)}
	mk := &e.kernel
	b, ok := newBand(windowsOfX(inRows(p), 0))
	if last := p.O % mk.NR; !ok || !mk.Masks && last != 0 && last != mk.Narrow {
		return nil
	}
	b.parts = max(b.parts, (b.GridH*b.GridW+bandPixels-1)/bandPixels)
	b.parts = min(b.parts, b.GridH)
	k.band, k.private = b, b.floats(mk.Step)
	k.parts = min(mostParts, partBytes/4/k.sizes.dst, b.Images*b.parts, max(leastParts, p.N*p.OH*p.OW/partDepth))
	if k.parts < min(leastParts, b.Images*b.parts) {
		return nil
	}
	k.alone = p.Flops()/2 < smallWork
	if k.chunks = chunksPerThread * e.pool.Threads(); k.alone {
		k.chunks = 1
	}
	k.product, k.sum, k.order = k.productPart, k.sumPart, k.orderPart
	return k
}

// inRows is a pointwise convolution with longer rows of pixels, as many as let a micro-tile
// sum up: where rows begin and end means nothing.
func inRows(p engine.ConvProblem) engine.ConvProblem {
	if !isPointwise(p) {
		return p
	}
	pixels, rows := p.N*p.H*p.W, p.N*p.H
	for rows%2 == 0 && pixels/rows < rowPixels {
		rows /= 2
	}
	p.N, p.H, p.W = 1, rows, pixels/rows
	p.OH, p.OW = p.H, p.W
	return p
}

// padded is the floats of dwᵀ, which lies in scratch once for each part, and once more in
// between.
func (k *directW) padded() int { return (k.sizes.dst + lanes - 1) / lanes * lanes }

func (k *directW) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * ((k.parts+1)*k.padded() + k.e.pool.Threads()*k.private)
}

func (k *directW) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	k.e.pool.Do(k.alone, k.parts, k.product)
	if k.parts > 1 {
		k.e.pool.Do(k.alone, k.chunks, k.sum)
	}
	k.e.pool.Do(k.alone, k.chunks, k.order)
	k.o = operands{}
	return nil
}

func (k *directW) Close() error {
	k.e = nil
	return nil
}

// part is dwᵀ of one part.
func (k *directW) part(i int) []float32 { return k.o.scratch[i*k.padded():][:k.sizes.dst] }

func (k *directW) productPart(part int, ws *workspace) {
	b, dw := &k.band, k.part(part)
	own := k.o.scratch[(k.parts+1)*k.padded()+ws.thread*k.private:][:k.private]
	lo, hi := threads.Part(b.Images*b.parts, part, k.parts)
	for i := lo; i < hi; i++ {
		n := i / b.parts
		i0, i1 := threads.Part(b.GridH, i%b.parts, b.parts)
		x := b.place(own, k.o.a, n, i0, i1, k.e.kernel.Step)
		k.tiles(ws, dw, x, k.o.b[(n*b.GridH+i0)*b.GridW*k.p.O:], i1-i0, i > lo)
	}
	ws.forget()
}

// tiles sums up, or adds, what rows of dy and the band that they see are in dwᵀ.
func (k *directW) tiles(ws *workspace, dw, x, dy []float32, rows int, add bool) {
	mk, b, t, n := &k.e.kernel, &k.band, &ws.tile, k.p.O
	mr, nr := mk.Shape(n)
	t.K, t.Segments, t.Segment = b.GridW, rows, b.StepH*b.pitch()
	t.RS, t.KS, t.BS, t.Add = 1, b.StepW*b.c, n, add
	ws.spread(n)
	wide := b.k / len(b.strips) // a row of taps
	for j := 0; j < n; j += nr {
		t.B, t.Cols = dy[j:], min(nr, n-j)
		for s := range b.strips {
			for m := 0; m < wide; m += mr {
				t.A, t.Rows = x[s*b.down*b.pitch()+m:], min(mr, wide-m)
				t.C = dw[(s*wide+m)*n+j:]
				mk.Sum(t)
			}
		}
	}
}

// sumPart adds up a piece of all parts.
func (k *directW) sumPart(chunk int, _ *workspace) {
	lo, hi := threads.Part(k.sizes.dst, chunk, k.chunks)
	for i := 1; i < k.parts; i++ {
		accumulate(k.part(0)[lo:hi], k.part(i)[lo:hi])
	}
}

// orderPart brings columns of dwᵀ (taps, C, O) to rows of dw (O, C, taps).
func (k *directW) orderPart(chunk int, ws *workspace) {
	n, taps, c := k.p.O, k.p.KH*k.p.KW, k.p.C
	lo, hi := threads.Part(n, chunk, k.chunks)
	rows := k.o.scratch[k.parts*k.padded():][:k.sizes.dst]
	ws.turn.run(rows[lo*taps*c:], taps*c, k.part(0)[lo:], n, taps*c, hi-lo)
	for o := lo * taps * c; o < hi*taps*c; o += taps * c {
		ws.turn.run(k.o.dst[o:o+taps*c], taps, rows[o:o+taps*c], c, taps, c)
	}
}

func accumulate(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}
