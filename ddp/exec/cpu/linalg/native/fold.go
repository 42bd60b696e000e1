package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/threads"
)

// fold is GradX for images of few channels, as many as would leave most of a
// tile's columns empty. Image by image,
//
//	seen (pixels of y, taps·C) = dy (pixels of y, O) · w (O, taps·C)
//
// and then each pixel of dx sums what its windows say of it.
type fold struct {
	e     *Engine
	p     engine.ConvProblem
	q     product // of one image
	sizes sizes
	o     operands // during Run
	first int      // image of chunk 0
	pack  func(chunk int, ws *workspace)
	image func(n int, ws *workspace)
}

// foldPays is a rule of thumb: columns per tile against columns per pixel.
func foldPays(t micro.Kernel, p engine.ConvProblem) bool {
	return p.Groups == 1 && 4*p.C <= t.NR && p.KH*p.KW > 1 && p.OH*p.OW > 1
}

func newFold(e *Engine, p engine.ConvProblem) *fold {
	taps, pixels := p.KH*p.KW, p.OH*p.OW
	k := &fold{e: e, p: p, sizes: convSizes(engine.GradX, p)}
	b := columns{taps: []int{0}, channels: p.O, channelStep: p.C * taps}
	for t := range taps { // columns with channels last
		for c := range p.C {
			b.order = append(b.order, c*taps+t)
		}
	}
	k.q = product{m: pixels, n: taps * p.C, k: p.O, a: matrixRows{p.O}, b: b, c: grid{h: 1, w: pixels, col: taps * p.C}}
	k.pack, k.image = k.packPart, k.imagePart
	return k
}

// seen is the number of floats of one image's windows.
func (k *fold) seen() int { return (k.q.m*k.q.n + 15) &^ 15 }

func (k *fold) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.q.packed(k.e.tile) + k.e.pool.Threads()*k.seen())
}

func (k *fold) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.e == nil || k.e.pool == nil {
		return ErrClosed
	}
	k.o = k.sizes.bind(dst, a, b, scratch, k.Scratch())
	alone := k.p.Flops()/2 < smallWork
	k.e.pool.Do(alone, 1, k.pack)
	for n := 0; n < k.p.N; n += threads.MaxChunks {
		k.first = n
		k.e.pool.Do(alone, min(k.p.N-n, threads.MaxChunks), k.image)
	}
	k.o = operands{}
	return nil
}

func (k *fold) Close() error {
	k.e = nil
	return nil
}

func (k *fold) packPart(_ int, _ *workspace) {
	k.q.packPanels(k.e.tile, k.o.scratch, k.o.b, 0, k.q.panels(k.e.tile))
}

func (k *fold) imagePart(chunk int, ws *workspace) {
	t, n := k.e.tile, k.first+chunk
	seen := k.o.scratch[k.q.packed(t)+ws.thread*k.seen():][:k.seen()]
	dy, dx := k.p.OH*k.p.OW*k.p.O, k.p.H*k.p.W*k.p.C
	o := operands{dst: seen, a: k.o.a[n*dy : (n+1)*dy]}
	k.q.rowTiles(t, ws, o, k.o.scratch, 0, (k.q.m+t.MR-1)/t.MR, 0, k.q.panels(t))
	k.sum(k.o.dst[n*dx:(n+1)*dx], seen)
}

// sum adds each window to the pixels of dx that it covers.
func (k *fold) sum(dx, seen []float32) {
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
				k.sumRow(row, seen[((oh*p.OW+ow)*p.KH+kh)*p.KW*p.C:][:p.KW*p.C], ow*p.StrideW-p.PadL)
			}
		}
	}
}

// sumRow adds one row of a window, whose first tap is at pixel iw, to a row.
func (k *fold) sumRow(row, seen []float32, iw int) {
	p := &k.p
	if p.DilW == 1 {
		from, to := max(iw, 0), min(iw+p.KW, p.W)
		if from < to {
			accumulate(row[from*p.C:to*p.C], seen[(from-iw)*p.C:])
		}
		return
	}
	for kw := range p.KW {
		if i := iw + kw*p.DilW; i >= 0 && i < p.W {
			accumulate(row[i*p.C:(i+1)*p.C], seen[kw*p.C:])
		}
	}
}

func accumulate(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}
