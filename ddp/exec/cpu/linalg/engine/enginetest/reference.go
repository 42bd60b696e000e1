package enginetest

import "ebtrain/ddp/exec/cpu/linalg/engine"

// reference is a bilinear computation dst = Σ a·b: the extents of its
// operands, and a walk over every term of the sum.
type reference struct {
	dst, a, b int
	walk      func(term func(dst, a, b int))
	mixed     func(a, b []float32) float64 // see tiles.go; nil if there are no tiles
}

// convReference walks over the terms x·w·y of a convolution. Every op is the
// same walk with the roles of the three exchanged.
func convReference(op engine.ConvOp, p engine.ConvProblem) reference {
	cg, og := p.C/p.Groups, p.O/p.Groups
	nx, nw, ny := p.N*p.H*p.W*p.C, p.O*cg*p.KH*p.KW, p.N*p.OH*p.OW*p.O
	walk := func(term func(x, w, y int)) {
		for n := range p.N {
			for oh := range p.OH {
				for ow := range p.OW {
					for kh := range p.KH {
						for kw := range p.KW {
							h, w := oh*p.StrideH+kh*p.DilH-p.PadT, ow*p.StrideW+kw*p.DilW-p.PadL
							if h < 0 || h >= p.H || w < 0 || w >= p.W {
								continue
							}
							for o := range p.O {
								for c := range cg {
									term(((n*p.H+h)*p.W+w)*p.C+o/og*cg+c, ((o*cg+c)*p.KH+kh)*p.KW+kw, ((n*p.OH+oh)*p.OW+ow)*p.O+o)
								}
							}
						}
					}
				}
			}
		}
	}
	m := func(a, b []float32) float64 { return mixed(op, p, a, b) }
	switch op {
	case engine.Forward:
		return reference{ny, nx, nw, func(term func(dst, a, b int)) { walk(func(x, w, y int) { term(y, x, w) }) }, m}
	case engine.GradX:
		return reference{nx, nw, ny, func(term func(dst, a, b int)) { walk(func(x, w, y int) { term(x, w, y) }) }, m}
	default:
		return reference{nw, nx, ny, func(term func(dst, a, b int)) { walk(func(x, w, y int) { term(w, x, y) }) }, m}
	}
}

func matMulReference(p engine.MatMulProblem) reference {
	return reference{dst: p.M * p.N, a: p.M * p.K, b: p.K * p.N, walk: func(term func(dst, a, b int)) {
		for m := range p.M {
			for n := range p.N {
				for k := range p.K {
					a, b := m*p.K+k, k*p.N+n
					if p.TransA {
						a = k*p.M + m
					}
					if p.TransB {
						b = n*p.K + k
					}
					term(m*p.N+n, a, b)
				}
			}
		}
	}}
}
