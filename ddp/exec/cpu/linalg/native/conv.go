package native

import (
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/lower"
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
	cg, og, taps := p.C/p.Groups, p.O/p.Groups, p.KH*p.KW
	for g := range p.Groups {
		b := columns{base: g * og * cg * taps, channels: cg, channelStep: taps, columnStep: cg * taps}
		if op == engine.Forward {
			list = append(list, convProduct(lower.Forward(p), windowsOfX(p, g), b, og, g*og))
			continue
		}
		b.channels, b.channelStep, b.columnStep = og, b.columnStep, b.channelStep
		for _, q := range lower.GradX(p) {
			list = append(list, convProduct(q, newWindows(q, p.OH, p.OW, p.O, g*og, og), b, cg, g*cg))
		}
	}
	return list
}

// convProduct is a product of one group, whose n columns of C begin at first.
func convProduct(q lower.Product, a *windows, b columns, n, first int) product {
	for _, t := range q.Taps {
		b.taps = append(b.taps, t.Index)
	}
	c := q.C
	return product{m: q.Rows(), n: n, k: a.k, a: a, b: b, c: grid{q.GridH, q.GridW, first + c.Base, c.Image, c.Row, c.Col}}
}

// windowsOfX is what each pixel of y sees of x, in one group.
func windowsOfX(p engine.ConvProblem, g int) *windows {
	cg := p.C / p.Groups
	return newWindows(lower.Forward(p), p.H, p.W, p.C, g*cg, cg)
}
