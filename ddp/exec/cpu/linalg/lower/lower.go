// Package lower writes convolutions as matrix products of image windows: which pixels a
// window has, which taps of the weight they meet, and where results belong.
//
//	op        A                 B                      products
//	Forward   windows of x      the weight             one
//	GradX     windows of dy     the weight             one for each remainder of dx's
//	                                                   pixels by the stride
//	GradW     dyᵀ               windows of x, as       one
//	                            Forward has them
//
// It sees one group of channels; offsets of other groups are for the caller to add.
package lower

import (
	"cmp"
	"slices"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// Product is C = A·B, where row m of A and C is a pixel of a grid over images, in
// row-major order. The windows of neighbours are Step pixels apart.
type Product struct {
	Images, GridH, GridW int
	StepH, StepW         int
	Taps                 []Tap // in order of DH, then DW
	C                    Places
}

// Tap is a pixel of a window, relative to the window's corner, and the tap of the
// weight that it meets.
type Tap struct{ DH, DW, Index int }

// Places are where rows of C begin, in numbers: steps from image to image, from row to
// row of the grid, and from pixel to pixel.
type Places struct{ Base, Image, Row, Col int }

// Pixel is row I, column J of the grid over image N.
type Pixel struct{ N, I, J int }

// Forward is y = windows of x · w.
func Forward(p engine.ConvProblem) Product {
	q := Product{
		Images: p.N, GridH: p.OH, GridW: p.OW, StepH: p.StrideH, StepW: p.StrideW,
		C: Places{0, p.OH * p.OW * p.O, p.OW * p.O, p.O},
	}
	for kh := range p.KH {
		for kw := range p.KW {
			q.Taps = append(q.Taps, Tap{kh*p.DilH - p.PadT, kw*p.DilW - p.PadL, kh*p.KW + kw})
		}
	}
	return q
}

// GradX is dx = windows of dy · w. With strides above 1, pixels of dx at different
// remainders meet different taps: each remainder (ph, pw) is a product of its own, over
// the pixels (ph + i·stride, pw + j·stride). An extent of y of 1 makes the stride
// irrelevant, so it may as well be beyond all of x: then each pixel meets just the taps
// that are not zero.
func GradX(p engine.ConvProblem) (list []Product) {
	if p.OH == 1 {
		p.StrideH = p.H + p.PadT + p.PadB
	}
	if p.OW == 1 {
		p.StrideW = p.W + p.PadL + p.PadR
	}
	for ph := range min(p.StrideH, p.H) {
		for pw := range min(p.StrideW, p.W) {
			list = append(list, gradXPhase(p, ph, pw))
		}
	}
	return list
}

func gradXPhase(p engine.ConvProblem, ph, pw int) Product {
	q := Product{
		Images: p.N, GridH: (p.H - ph + p.StrideH - 1) / p.StrideH, GridW: (p.W - pw + p.StrideW - 1) / p.StrideW, StepH: 1, StepW: 1,
		C: Places{(ph*p.W + pw) * p.C, p.H * p.W * p.C, p.StrideH * p.W * p.C, p.StrideW * p.C},
	}
	// dx at (ph + i·s) gets dy at o for each tap k with o·s + k·d − pad = ph + i·s.
	for kh := range p.KH {
		for kw := range p.KW {
			h, w := ph+p.PadT-kh*p.DilH, pw+p.PadL-kw*p.DilW
			if h%p.StrideH == 0 && w%p.StrideW == 0 {
				q.Taps = append(q.Taps, Tap{h / p.StrideH, w / p.StrideW, kh*p.KW + kw})
			}
		}
	}
	slices.SortFunc(q.Taps, func(s, t Tap) int { return cmp.Or(cmp.Compare(s.DH, t.DH), cmp.Compare(s.DW, t.DW)) })
	return q
}

// Rows of A and C.
func (p *Product) Rows() int { return p.Images * p.GridH * p.GridW }

// Pixel of row m.
func (p *Product) Pixel(m int) Pixel {
	return Pixel{m / (p.GridH * p.GridW), m / p.GridW % p.GridH, m % p.GridW}
}

// Next is the pixel of the row after a.
func (p *Product) Next(a Pixel) Pixel {
	if a.J++; a.J == p.GridW {
		a.J = 0
		if a.I++; a.I == p.GridH {
			a.I = 0
			a.N++
		}
	}
	return a
}

// Row is where the row of C of a pixel begins.
func (p *Product) Row(a Pixel) int {
	return p.C.Base + a.N*p.C.Image + a.I*p.C.Row + a.J*p.C.Col
}
