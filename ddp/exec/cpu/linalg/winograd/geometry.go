package winograd

import "ebtrain/ddp/exec/cpu/linalg/engine"

// correlated is one correlation at stride 1: the results at points of out are
// sums over the channels of all lattices of in.
type correlated struct {
	in     []lattice
	out    lattice
	tiles  tileGrid // of out
	filter filter
}

// depthBlocks is into how many blocks the depth of the products is cut.
func (c *correlated) depthBlocks() int { return (c.filter.k + depthBlock - 1) / depthBlock }

// inputLattices are the lattices of x that y is a sum over: x itself, or at stride 2 its
// odd and even rows and columns.
func inputLattices(p engine.ConvProblem) (ls []lattice) {
	for i := range p.StrideH {
		for j := range p.StrideW {
			ls = append(ls, lattice{p.H, p.W, p.C, p.StrideH, i - p.PadT, j - p.PadL})
		}
	}
	return ls
}

// forwardFilter is w (O,C,KH,KW) with rows for the channels of inputLattices:
// lattice (i,j) meets every stride-th tap from (i,j) on.
func forwardFilter(p engine.ConvProblem, width int) filter {
	taps := p.KH * p.KW
	f := filter{k: p.C * p.StrideH * p.StrideW, n: p.O, width: width, taps: taps, nStep: p.C * taps, kStep: taps,
		down: p.StrideH * p.KW, across: p.StrideW}
	for i := range p.StrideH {
		for j := range p.StrideW {
			f.first = append(f.first, i*p.KW+j)
		}
	}
	return f
}

// turnedFilter is w with rows for the channels of dy: the taps that meet
// lattice (i,j) of inputLattices, turned around by 180°.
func turnedFilter(p engine.ConvProblem, width, i, j int) filter {
	taps, r := p.KH*p.KW, p.KH/p.StrideH
	last := (i+p.StrideH*(r-1))*p.KW + j + p.StrideW*(r-1)
	return filter{k: p.O, n: p.C, width: width, taps: taps, nStep: taps, kStep: p.C * taps,
		first: []int{last}, down: -p.StrideH * p.KW, across: -p.StrideW}
}

func pixels(h, w, c int) lattice { return lattice{h, w, c, 1, 0, 0} }

// forward is y from x.
func forward(p engine.ConvProblem, s *scheme) []correlated {
	return []correlated{{inputLattices(p), pixels(p.OH, p.OW, p.O), tileGrid{p.N, p.OH, p.OW, s.m}, forwardFilter(p, s.width())}}
}

// gradX is dx from dy, one correlation for each lattice of x: with i the
// lattice's row, r the taps that it meets,
//
//	dx[s·u + i - pad] = Σ_a dy[u - (r-1) + a] · w[s·(r-1-a) + i]
func gradX(p engine.ConvProblem, s *scheme) (cs []correlated) {
	r := p.KH / p.StrideH
	for i := range p.StrideH {
		for j := range p.StrideW {
			u, v := firstPoint(i-p.PadT, p.StrideH), firstPoint(j-p.PadL, p.StrideW)
			out := lattice{p.H, p.W, p.C, p.StrideH, i - p.PadT + p.StrideH*u, j - p.PadL + p.StrideW*v}
			cs = append(cs, correlated{
				in:     []lattice{{p.OH, p.OW, p.O, 1, u - (r - 1), v - (r - 1)}},
				out:    out,
				tiles:  tileGrid{p.N, points(out.row, out.step, p.H), points(out.col, out.step, p.W), s.m},
				filter: turnedFilter(p, s.width(), i, j),
			})
		}
	}
	return cs
}

// firstPoint is the first u with origin + step·u ≥ 0.
func firstPoint(origin, step int) int {
	u := 0
	for origin+step*u < 0 {
		u++
	}
	return u
}

// points is how many steps from origin on stay below size.
func points(origin, step, size int) int { return max(0, (size-origin+step-1)/step) }
