package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// col2im is GradX for images of few channels, as many as would leave most of a
// panel's columns empty. Image by image,
//
//	columns (pixels of y, taps·C) = dy (pixels of y, O) · w (O, taps·C)
//
// and then each pixel of dx sums the columns of its windows (col2im).
type col2im struct {
	e     *Engine
	p     engine.ConvProblem
	q     product // of one image
	sizes sizes
	o     operands // during Run
	pack  func(chunk int, ws *workspace)
	image func(n int, ws *workspace)
}

// col2imPays is a rule of thumb: columns of a panel against those of a pixel, and a product
// that is long beside the sums.
func col2imPays(mk micro.Kernel, p engine.ConvProblem) bool {
	return p.Groups == 1 && p.C > 1 && 8*p.C <= mk.NR && p.O >= 64 && p.KH*p.KW > 1 && p.OH*p.OW > 1
}

func newCol2im(e *Engine, p engine.ConvProblem) *col2im {
	taps, pixels := p.KH*p.KW, p.OH*p.OW
	k := &col2im{e: e, p: p, sizes: convSizes(engine.GradX, p)}
	b := columns{taps: []int{0}, channels: p.O, channelStep: p.C * taps}
	for t := range taps { // columns with channels last
		for c := range p.C {
			b.order = append(b.order, c*taps+t)
		}
	}
	k.q = product{m: pixels, n: taps * p.C, k: p.O, a: matrixRows{p.O, true}, b: b, c: grid{h: 1, w: pixels, col: taps * p.C}}
	k.pack, k.image = k.packPart, k.imagePart
	return k
}

// columns is the number of floats of one image's columns.
func (k *col2im) columns() int { return (k.q.m*k.q.n + 15) &^ 15 }

func (k *col2im) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.q.packed(&k.e.kernel) + k.e.pool.Threads()*k.columns())
}

func (k *col2im) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	alone := k.p.Flops()/2 < smallWork
	k.e.pool.Do(alone, 1, k.pack)
	k.e.pool.Do(alone, k.p.N, k.image)
	k.o = operands{}
	return nil
}

func (k *col2im) Close() error {
	k.e = nil
	return nil
}

func (k *col2im) packPart(_ int, ws *workspace) {
	_, panels := k.q.tiles(&k.e.kernel)
	k.q.packPanels(&k.e.kernel, ws, k.o.scratch, k.o.b, 0, panels)
}

func (k *col2im) imagePart(n int, ws *workspace) {
	mk := &k.e.kernel
	rows, panels := k.q.tiles(mk)
	cols := k.o.scratch[k.q.packed(mk)+ws.thread*k.columns():][:k.columns()]
	dy, dx := k.p.OH*k.p.OW*k.p.O, k.p.H*k.p.W*k.p.C
	o := operands{dst: cols, a: k.o.a[n*dy : (n+1)*dy], b: k.o.b}
	k.q.microTiles(mk, ws, o, k.o.scratch, 0, rows, 0, panels)
	k.sum(k.o.dst[n*dx:(n+1)*dx], cols)
}

// sum adds each window to the pixels of dx that it covers.
func (k *col2im) sum(dx, cols []float32) {
	p := &k.p
	clear(dx)
	for oh := range p.OH {
		for kh := range p.KH {
			ih := oh*p.StrideH + kh*p.DilH - p.PadT
			if ih < 0 || ih >= p.H {
				continue
			}
			row := dx[ih*p.W*p.C : (ih+1)*p.W*p.C]
			for ow := range p.OW {
				k.sumRow(row, cols[((oh*p.OW+ow)*p.KH+kh)*p.KW*p.C:][:p.KW*p.C], ow*p.StrideW-p.PadL)
			}
		}
	}
}

// sumRow adds one row of a window, whose first tap is at pixel iw, to a row.
func (k *col2im) sumRow(row, cols []float32, iw int) {
	p := &k.p
	if p.DilW == 1 {
		from, to := max(iw, 0), min(iw+p.KW, p.W)
		if from < to {
			accumulate(row[from*p.C:to*p.C], cols[(from-iw)*p.C:])
		}
		return
	}
	for kw := range p.KW {
		if i := iw + kw*p.DilW; i >= 0 && i < p.W {
			accumulate(row[i*p.C:(i+1)*p.C], cols[kw*p.C:])
		}
	}
}

func accumulate(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}
