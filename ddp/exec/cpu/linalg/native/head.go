package native

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// head is a convolution whose kernel covers the whole image: a matrix product
// with the weight as it lies, (O, C·taps). It is the images, far smaller than
// the weight, that are brought from channels last into the weight's order:
//
//	y (N,O) = x (N,C·taps) · wᵀ    dx = dy · w    dw = dyᵀ · x
type head struct {
	op       engine.ConvOp
	n, c     int
	taps     int
	product  *products
	from, to []float32 // during Run: the images to be reordered
	reorder  func(chunk int, ws *workspace)
}

func isHead(p engine.ConvProblem) bool {
	return p.Groups == 1 && p.KH == p.H && p.KW == p.W && p.DilH == 1 && p.DilW == 1 &&
		p.PadT == 0 && p.PadB == 0 && p.PadL == 0 && p.PadR == 0
}

func newHead(e *Engine, op engine.ConvOp, p engine.ConvProblem) *head {
	k := &head{op: op, n: p.N, c: p.C, taps: p.KH * p.KW}
	m := engine.MatMulProblem{M: p.N, K: p.C * k.taps, N: p.O, TransB: true}
	switch op {
	case engine.GradX:
		m = engine.MatMulProblem{M: p.N, K: p.O, N: p.C * k.taps}
	case engine.GradW:
		m = engine.MatMulProblem{M: p.O, K: p.N, N: p.C * k.taps, TransA: true}
	}
	k.product = newMatMul(e, m)
	k.reorder = k.reorderPart
	return k
}

// images is the number of floats of the images.
func (k *head) images() int { return k.n * k.c * k.taps }

// reordered is the size of the images in scratch, in bytes.
func (k *head) reordered() int { return (4*k.images() + 63) &^ 63 }

func (k *head) Scratch() int { return k.reordered() + k.product.Scratch() }

func (k *head) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.product.e == nil || k.product.e.pool == nil {
		return ErrClosed
	}
	rest := unsafe.Add(scratch, k.reordered())
	switch k.op {
	case engine.Forward:
		k.inOrder(scratch, a)
		return k.product.Run(dst, scratch, b, rest)
	case engine.GradW:
		k.inOrder(scratch, a)
		return k.product.Run(dst, b, scratch, rest)
	}
	if err := k.product.Run(scratch, b, a, rest); err != nil {
		return err
	}
	k.inOrder(dst, scratch)
	return nil
}

// inOrder reorders images.
func (k *head) inOrder(to, from unsafe.Pointer) {
	k.to, k.from = unsafe.Slice((*float32)(to), k.images()), unsafe.Slice((*float32)(from), k.images())
	k.product.e.pool.Do(k.product.alone, k.product.chunks, k.reorder)
	k.to, k.from = nil, nil
}

func (k *head) Close() error { return k.product.Close() }

// reorderPart transposes images: (taps, C) to (C, taps), or back.
func (k *head) reorderPart(chunk int, ws *workspace) {
	rows, cols := k.taps, k.c
	if k.op == engine.GradX {
		rows, cols = cols, rows
	}
	lo, hi := threads.Part(k.n, chunk, k.product.chunks)
	for n := lo; n < hi; n++ {
		image := n * rows * cols
		ws.turn.run(k.to[image:image+rows*cols], rows, k.from[image:image+rows*cols], cols, rows, cols)
	}
}

// isPointwise says whether images and weight are matrices as they lie.
func isPointwise(p engine.ConvProblem) bool {
	return p.Groups == 1 && p.KH == 1 && p.KW == 1 && p.StrideH == 1 && p.StrideW == 1 &&
		p.PadT == 0 && p.PadB == 0 && p.PadL == 0 && p.PadR == 0
}

// newPointwise is Forward, y (pixels,O) = x · wᵀ, or GradX, dx (pixels,C) = dy · w.
func newPointwise(e *Engine, op engine.ConvOp, p engine.ConvProblem) *products {
	pixels := p.N * p.H * p.W
	if op == engine.Forward {
		return newMatMul(e, engine.MatMulProblem{M: pixels, K: p.C, N: p.O, TransB: true})
	}
	k := newMatMul(e, engine.MatMulProblem{M: pixels, K: p.O, N: p.C})
	k.sizes = convSizes(op, p) // w comes before dy
	return k
}
