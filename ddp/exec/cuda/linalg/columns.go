package linalg

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// Columns is how an image becomes a matrix, and back:
//
//	m[n,i,j, k] = image[n, i·StrideH + f·DilH − PadT, j·StrideW + e·DilW − PadL, c]
//
// where k is (f·KW + e)·C + c, or (c·KH + f)·KW + e if First. It is 0 where there is no
// such pixel, and in columns beyond KH·KW·C. Pads and dilations may be negative; PadB and
// PadR are not used. Columns are comparable.
type Columns struct {
	N, H, W, C int // the image
	I, J       int // the places of the kernel
	Width      int // the number of columns
	First      bool
	graph.Window
	// Back is from the matrix to the image: each pixel is the sum, in order of f and e, in
	// float32, of what it was copied to.
	Back     bool
	From, To graph.DType // F32 or BF16
}

func (c Columns) image() int64  { return int64(c.N) * int64(c.H) * int64(c.W) * int64(c.C) }
func (c Columns) matrix() int64 { return int64(c.N) * int64(c.I) * int64(c.J) * int64(c.Width) }

// Lens are the numbers of elements of result and operand.
func (c Columns) Lens() (dst, src int64) {
	if c.Back {
		return c.image(), c.matrix()
	}
	return c.matrix(), c.image()
}

// ByColumns is a convolution as a product, with what makes its operands and result of
// those of the convolution.
type ByColumns struct {
	Product
	// Swap says that the product's operands are those of the convolution in the other
	// order.
	Swap bool
	// Dst, A and B are of the convolution's result and operands; nil where what lies there
	// is the product's, but for its type.
	Dst, A, B *Columns
}

// fewChannels and mostColumns bound what is done by columns: the matrix is some of the
// images in size.
const fewChannels, mostColumns = 8, 256

// colsAlign is what the number of columns is a multiple of: 16 bytes of bfloat16, which
// the units of matrix products want.
const colsAlign = 8

// Columns is the convolution as a product of a matrix of the columns of the image of few
// channels, x or y, in types t: operands both BF16 or both F32, which may be others than
// those of p. The weights are a matrix as they lie, but for zeros that make K a multiple
// of 8.
//
//	few C: X (M,K) of x, K = KH·KW·C           few O: Y (M,K) of y, K = O·KH·KW
//	       M = N·OH·OW                                M = N·H·W
//	y  (M,O) = X (M,K) · w (O,K)ᵀ              Y  (M,K) = x (M,C) · w (K,C)ᵀ, then back to y
//	X  (M,K) = dy (M,O) · w (O,K), back to dx  dx (M,C) = Y (M,K) · w (K,C)
//	dw (O,K) = dy (M,O)ᵀ · X (M,K)             dw (K,C) = Y (M,K)ᵀ · x (M,C)
//
// ok is false where both images have many channels or the kernel is large, where the
// convolution is a product without (see Product), and where few O would need strides.
func (p Conv) Columns(t Types) (q ByColumns, ok bool) {
	if _, _, plain := p.Product(); plain || p.Groups != 1 || t.A != t.B || t.A != graph.F32 && t.A != graph.BF16 {
		return q, false
	}
	dst, a, b := p.T.Dst, p.T.A, p.T.B
	area := p.KH * p.KW
	switch few := min(p.C, p.O); {
	case few > fewChannels || few*area > mostColumns:
		return q, false
	case p.O < p.C && (p.StrideH != 1 || p.StrideW != 1):
		return q, false
	}
	t.Dst = graph.F32 // of what is added up, or cut out, after
	if p.C <= p.O {
		k := area * p.C
		width, m := up(k), p.N*p.OH*p.OW
		image := Columns{N: p.N, H: p.H, W: p.W, C: p.C, I: p.OH, J: p.OW, Width: width, Window: p.Window}
		rows := Columns{N: p.O, H: 1, W: 1, C: k, I: 1, J: 1, Width: width, Window: graph.SquareWindow(1, 1, 0)}
		switch p.Op {
		case Forward:
			t.Dst = p.result(t)
			q = ByColumns{Product{Batch: 1, M: m, N: p.O, K: width, TransB: true, T: t}, false, nil, image.gather(a, t), rows.pad(b, t)}
		case GradX:
			q = ByColumns{Product{Batch: 1, M: m, N: width, K: p.O, T: t}, true, image.back(dst), rows.pad(a, t), nil}
		default:
			q = ByColumns{Product{Batch: 1, M: p.O, N: width, K: m, TransA: true, T: t}, true, rows.cut(dst), image.gather(a, t), nil}
		}
		return q, true
	}
	k := area * p.O
	width, m := up(k), p.N*p.H*p.W
	// A pixel of x lies under tap f of the kernel where y is at its place less f.
	w := p.Window
	w.PadT, w.PadL, w.DilH, w.DilW = -w.PadT, -w.PadL, -w.DilH, -w.DilW
	image := Columns{N: p.N, H: p.OH, W: p.OW, C: p.O, I: p.H, J: p.W, Width: width, First: true, Window: w}
	rows := Columns{N: 1, H: 1, W: 1, C: k * p.C, I: 1, J: 1, Width: width * p.C, Window: graph.SquareWindow(1, 1, 0)}
	switch p.Op {
	case Forward:
		q = ByColumns{Product{Batch: 1, M: m, N: width, K: p.C, TransB: true, T: t}, false, image.back(dst), nil, rows.pad(b, t)}
	case GradX:
		t.Dst = p.result(t)
		q = ByColumns{Product{Batch: 1, M: m, N: p.C, K: width, T: t}, true, nil, rows.pad(a, t), image.gather(b, t)}
	default:
		q = ByColumns{Product{Batch: 1, M: width, N: p.C, K: m, TransA: true, T: t}, true, rows.cut(dst), nil, image.gather(b, t)}
	}
	return q, true
}

// result is the type of a result that a product of types t makes itself.
func (p Conv) result(t Types) graph.DType {
	if t.A == graph.BF16 {
		return p.T.Dst
	}
	return graph.F32
}

func up(k int) int { return (k + colsAlign - 1) / colsAlign * colsAlign }

// gather makes a matrix for a product of types t of an image.
func (c Columns) gather(from graph.DType, t Types) *Columns {
	c.From, c.To = from, t.A
	return &c
}

// back makes an image of a product's result.
func (c Columns) back(to graph.DType) *Columns {
	c.Back, c.From, c.To = true, graph.F32, to
	return &c
}

// pad is gather, and cut is back, of rows; none where no zeros are needed.
func (c Columns) pad(from graph.DType, t Types) *Columns {
	if c.C == c.Width {
		return nil
	}
	return c.gather(from, t)
}

func (c Columns) cut(to graph.DType) *Columns {
	if c.C == c.Width {
		return nil
	}
	return c.back(to)
}

func (c Columns) String() string {
	if c.Back {
		return fmt.Sprintf("image %dx%dx%dx%d of %dx%d places by %d columns", c.N, c.H, c.W, c.C, c.I, c.J, c.Width)
	}
	return fmt.Sprintf("%dx%d places by %d columns of image %dx%dx%dx%d", c.I, c.J, c.Width, c.N, c.H, c.W, c.C)
}
