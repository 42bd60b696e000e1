// Package loops is convolutions and matrix products as plain loops over
// float32 or float64: the CPU backend's kernels for element types that its
// engine does not take. Products are added up in float64. There are no kernels
// for an instruction set: all is Go.
//
// Memory is what package engine draws, dense: images (N, H, W, C), weights
// (O, C/Groups, KH, KW), matrices row-major. Each function computes the part w
// of n of its result (see threads.Part), whole rows of it, so that n goroutines
// can share the work:
//
//	MatMul     z   rows m                 ┌──────────┐ part 0 of 3
//	Conv       y   rows (image, oh)       ├──────────┤ part 1
//	ConvGradX  dx  rows (image, h)        ├──────────┤ part 2
//	ConvGradW  dw  filters o              └──────────┘
//
// A number does not depend on how many parts there are.
package loops

import (
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// Float is the element types.
type Float interface{ float32 | float64 }

// MatMul computes rows of z = A·B.
func MatMul[T Float](p engine.MatMulProblem, z, a, b []T, w, n int) {
	lo, hi := threads.Part(p.M, w, n)
	ai, ak := p.K, 1
	if p.TransA {
		ai, ak = 1, p.M
	}
	bk, bj := p.N, 1
	if p.TransB {
		bk, bj = 1, p.K
	}
	for i := lo; i < hi; i++ {
		for j := range p.N {
			var s float64
			for k := range p.K {
				s += float64(a[i*ai+k*ak]) * float64(b[k*bk+j*bj])
			}
			z[i*p.N+j] = T(s)
		}
	}
}

// Conv computes images of y from x and the weight wt.
func Conv[T Float](p engine.ConvProblem, y, x, wt []T, w, n int) {
	lo, hi := threads.Part(p.N*p.OH, w, n)
	cg, og := p.C/p.Groups, p.O/p.Groups
	for r := lo; r < hi; r++ {
		img, i := r/p.OH, r%p.OH
		for j := range p.OW {
			for o := range p.O {
				var s float64
				for kh := range p.KH {
					h := i*p.StrideH + kh*p.DilH - p.PadT
					if h < 0 || h >= p.H {
						continue
					}
					for kw := range p.KW {
						v := j*p.StrideW + kw*p.DilW - p.PadL
						if v < 0 || v >= p.W {
							continue
						}
						xs := x[((img*p.H+h)*p.W+v)*p.C+o/og*cg:][:cg]
						for c, xv := range xs {
							s += float64(xv) * float64(wt[((o*cg+c)*p.KH+kh)*p.KW+kw])
						}
					}
				}
				y[(r*p.OW+j)*p.O+o] = T(s)
			}
		}
	}
}

// ConvGradX computes rows of dx from the weight wt and dy.
func ConvGradX[T Float](p engine.ConvProblem, dx, wt, dy []T, w, n int) {
	lo, hi := threads.Part(p.N*p.H, w, n)
	cg, og := p.C/p.Groups, p.O/p.Groups
	for r := lo; r < hi; r++ {
		img, h := r/p.H, r%p.H
		for v := range p.W {
			for c := range p.C {
				g := c / cg
				var s float64
				for kh := range p.KH {
					i, ok := position(h+p.PadT-kh*p.DilH, p.StrideH, p.OH)
					if !ok {
						continue
					}
					for kw := range p.KW {
						j, ok := position(v+p.PadL-kw*p.DilW, p.StrideW, p.OW)
						if !ok {
							continue
						}
						ds := dy[((img*p.OH+i)*p.OW+j)*p.O+g*og:][:og]
						for o, d := range ds {
							s += float64(d) * float64(wt[(((g*og+o)*cg+c%cg)*p.KH+kh)*p.KW+kw])
						}
					}
				}
				dx[(r*p.W+v)*p.C+c] = T(s)
			}
		}
	}
}

// position is the window position whose first tap lies at t.
func position(t, stride, count int) (int, bool) {
	if t < 0 || t%stride != 0 || t/stride >= count {
		return 0, false
	}
	return t / stride, true
}

// ConvGradW computes output channels of dw from x and dy.
func ConvGradW[T Float](p engine.ConvProblem, dw, x, dy []T, w, n int) {
	lo, hi := threads.Part(p.O, w, n)
	cg, og := p.C/p.Groups, p.O/p.Groups
	for o := lo; o < hi; o++ {
		for c := range cg {
			for kh := range p.KH {
				for kw := range p.KW {
					dw[((o*cg+c)*p.KH+kh)*p.KW+kw] = T(gradW(p, x, dy, o, o/og*cg+c, kh, kw))
				}
			}
		}
	}
}

func gradW[T Float](p engine.ConvProblem, x, dy []T, o, c, kh, kw int) float64 {
	var s float64
	for img := range p.N {
		for i := range p.OH {
			h := i*p.StrideH + kh*p.DilH - p.PadT
			if h < 0 || h >= p.H {
				continue
			}
			for j := range p.OW {
				v := j*p.StrideW + kw*p.DilW - p.PadL
				if v < 0 || v >= p.W {
					continue
				}
				s += float64(x[((img*p.H+h)*p.W+v)*p.C+c]) * float64(dy[((img*p.OH+i)*p.OW+j)*p.O+o])
			}
		}
	}
	return s
}
