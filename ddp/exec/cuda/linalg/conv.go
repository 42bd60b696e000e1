package linalg

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// ConvOp is which of the three ops of a convolution (see graph.Conv), and with that
// what result and operands are.
type ConvOp uint8

const (
	Forward ConvOp = iota + 1 // y from (x, w)
	GradX                     // dx from (w, dy)
	GradW                     // dw from (x, dy)
)

func (op ConvOp) String() string {
	switch op {
	case Forward:
		return "conv2d"
	case GradX:
		return "conv2d_grad_x"
	case GradW:
		return "conv2d_grad_w"
	}
	return fmt.Sprintf("ConvOp(%d)", uint8(op))
}

// Conv is an op of a convolution: x (N,H,W,C), w (O,KH,KW,C/Groups), y (N,OH,OW,O).
type Conv struct {
	Op ConvOp
	graph.Conv
	N, C, H, W int
	O, OH, OW  int
	T          Types
}

func (p Conv) String() string {
	return fmt.Sprintf("%v %dx%dx%dx%d to %dx%dx%dx%d by %v, %v", p.Op, p.N, p.H, p.W, p.C, p.N, p.OH, p.OW, p.O, p.Conv, p.T)
}

func (p Conv) Check() error {
	if p.Op < Forward || p.Op > GradW {
		return fmt.Errorf("%v: want Forward, GradX or GradW", p)
	}
	if p.N < 1 || p.C < 1 || p.H < 1 || p.W < 1 || p.O < 1 || p.OH < 1 || p.OW < 1 || p.Groups < 1 {
		return fmt.Errorf("%v: want every extent to be at least 1", p)
	}
	if p.C%p.Groups != 0 || p.O%p.Groups != 0 {
		return fmt.Errorf("%v: %d groups do not divide %d and %d channels", p, p.Groups, p.C, p.O)
	}
	x := graph.T(graph.F32, p.N, p.C, p.H, p.W)
	w := graph.T(graph.F32, p.O, p.C/p.Groups, p.KH, p.KW)
	out, err := graph.Conv2D{Conv: p.Conv}.Infer([]graph.Type{x, w})
	if err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	if y := graph.D(p.N, p.O, p.OH, p.OW); out[0].Shape != y {
		return fmt.Errorf("%v: the output is %v, want %v", p, y, out[0].Shape)
	}
	if err := p.T.check(); err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	return nil
}

func (p Conv) Flops() int64 {
	return 2 * int64(p.N) * int64(p.OH) * int64(p.OW) * int64(p.O) * int64(p.C/p.Groups) * int64(p.KH) * int64(p.KW)
}

func (p Conv) Lens() (dst, a, b int64) {
	x := int64(p.N) * int64(p.H) * int64(p.W) * int64(p.C)
	w := int64(p.O) * int64(p.KH) * int64(p.KW) * int64(p.C/p.Groups)
	y := int64(p.N) * int64(p.OH) * int64(p.OW) * int64(p.O)
	switch p.Op {
	case Forward:
		return y, x, w
	case GradX:
		return x, w, y
	}
	return w, x, y
}

func (p Conv) Types() Types { return p.T }

func (p Conv) With(t Types) Problem { p.T = t; return p }

// Images are the element types of x, w and y, or of their gradients.
func (p Conv) Images() (x, w, y graph.DType) {
	switch p.Op {
	case Forward:
		return p.T.A, p.T.B, p.T.Dst
	case GradX:
		return p.T.Dst, p.T.A, p.T.B
	}
	return p.T.A, p.T.Dst, p.T.B
}

// Product is the convolution as a matrix product, for kernels of one pixel and for
// those that cover the whole image: nothing is moved, as images and weights both lie
// channels-last. swap says that the product's operands are those of the convolution
// in the other order; ok is false for all other convolutions.
//
//	y  (M,O) = x (M,K) · w (O,K)ᵀ        M = N·OH·OW
//	dx (M,K) = dy (M,O) · w (O,K)        K = KH·KW·C
//	dw (O,K) = dy (M,O)ᵀ · x (M,K)
func (p Conv) Product() (q Product, swap, ok bool) {
	one := p.KH == 1 && p.KW == 1 && p.StrideH == 1 && p.StrideW == 1
	covers := p.OH == 1 && p.OW == 1 && p.KH == p.H && p.KW == p.W // so it is not dilated, unless it is one pixel
	if p.Groups != 1 || p.PadT|p.PadB|p.PadL|p.PadR != 0 || !one && !covers {
		return Product{}, false, false
	}
	m, k := p.N*p.OH*p.OW, p.KH*p.KW*p.C
	switch p.Op {
	case Forward:
		return Product{Batch: 1, M: m, N: p.O, K: k, TransB: true, T: p.T}, false, true
	case GradX:
		return Product{Batch: 1, M: m, N: k, K: p.O, T: p.T.swapped()}, true, true
	}
	return Product{Batch: 1, M: p.O, N: k, K: m, TransA: true, T: p.T.swapped()}, true, true
}

func (t Types) swapped() Types { t.A, t.B = t.B, t.A; return t }
