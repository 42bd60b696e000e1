package native

import (
	"cmp"
	"slices"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

func convSizes(op engine.ConvOp, p engine.ConvProblem) sizes {
	x, w, y := p.N*p.H*p.W*p.C, p.O*(p.C/p.Groups)*p.KH*p.KW, p.N*p.OH*p.OW*p.O
	switch op {
	case engine.Forward:
		return sizes{y, x, w, false}
	case engine.GradX:
		return sizes{x, w, y, true}
	default:
		return sizes{w, x, y, false}
	}
}

// convProducts are the products of Forward or GradX, for each group.
func convProducts(op engine.ConvOp, p engine.ConvProblem) (list []product) {
	for g := range p.Groups {
		if op == engine.Forward {
			list = append(list, forward(p, g))
		} else {
			list = append(list, gradX(p, g)...)
		}
	}
	return list
}

// forward is y (pixels, O) = windows of x (pixels, taps·C) · w (taps·C, O), of
// one group.
func forward(p engine.ConvProblem, g int) product {
	cg, og, taps := p.C/p.Groups, p.O/p.Groups, p.KH*p.KW
	x := windowsOfX(p, g)
	b := columns{base: g * og * cg * taps, channels: cg, channelStep: taps, columnStep: cg * taps}
	for t := range taps {
		b.taps = append(b.taps, t)
	}
	return product{m: p.N * p.OH * p.OW, n: og, k: x.k, a: x, b: b,
		c: grid{p.OH, p.OW, g * og, p.OH * p.OW * p.O, p.OW * p.O, p.O}}
}

// windowsOfX is what each pixel of y sees of x.
func windowsOfX(p engine.ConvProblem, g int) *windows {
	cg := p.C / p.Groups
	v := &windows{h: p.H, w: p.W, c: p.C, first: g * cg, group: cg,
		gridH: p.OH, gridW: p.OW, stepH: p.StrideH, stepW: p.StrideW}
	for kh := range p.KH {
		for kw := range p.KW {
			v.addTap(kh*p.DilH-p.PadT, kw*p.DilW-p.PadL)
		}
	}
	return v
}

// gradX is dx = windows of dy · w, of one group. With strides above 1, pixels
// of dx at different remainders see different taps: each remainder (ph, pw) is
// a product of its own, over the pixels (ph + i·stride, pw + j·stride).
// An extent of y of 1 makes the stride irrelevant, so it may as well be beyond
// all of x: then each pixel sees just the taps that are not zero.
func gradX(p engine.ConvProblem, g int) (list []product) {
	if p.OH == 1 {
		p.StrideH = p.H + p.PadT + p.PadB
	}
	if p.OW == 1 {
		p.StrideW = p.W + p.PadL + p.PadR
	}
	for ph := range min(p.StrideH, p.H) {
		for pw := range min(p.StrideW, p.W) {
			list = append(list, gradXPhase(p, g, ph, pw))
		}
	}
	return list
}

func gradXPhase(p engine.ConvProblem, g, ph, pw int) product {
	cg, og, taps := p.C/p.Groups, p.O/p.Groups, p.KH*p.KW
	v := &windows{h: p.OH, w: p.OW, c: p.O, first: g * og, group: og,
		gridH: (p.H - ph + p.StrideH - 1) / p.StrideH, gridW: (p.W - pw + p.StrideW - 1) / p.StrideW, stepH: 1, stepW: 1}
	b := columns{base: g * og * cg * taps, channels: og, channelStep: cg * taps, columnStep: taps}
	// dx at (ph + i·s) gets dy at o for each tap k with o·s + k·d − pad = ph + i·s.
	type tap struct{ dh, dw, index int }
	var met []tap
	for kh := range p.KH {
		for kw := range p.KW {
			h, w := ph+p.PadT-kh*p.DilH, pw+p.PadL-kw*p.DilW
			if h%p.StrideH == 0 && w%p.StrideW == 0 {
				met = append(met, tap{h / p.StrideH, w / p.StrideW, kh*p.KW + kw})
			}
		}
	}
	slices.SortFunc(met, func(s, t tap) int { return cmp.Or(cmp.Compare(s.dh, t.dh), cmp.Compare(s.dw, t.dw)) })
	for _, t := range met {
		v.addTap(t.dh, t.dw)
		b.taps = append(b.taps, t.index)
	}
	return product{m: p.N * v.gridH * v.gridW, n: cg, k: v.k, a: v, b: b,
		c: grid{v.gridH, v.gridW, (ph*p.W+pw)*p.C + g*cg, p.H * p.W * p.C, p.StrideH * p.W * p.C, p.StrideW * p.C}}
}
