package amx

import "ebtrain/ddp/exec/cpu/linalg/lower"

// product is C (pixels, n) = windows of an image (pixels, taps·channels) · B.
type product struct {
	lower.Product
	base    int   // bytes from the start of a panel to its B
	offsets []int // of the steps, in a window
}

// steps is how many steps of depth there are.
func (p *product) steps() int { return len(p.offsets) }

// place finds where the product's windows are in an image, and its B in a panel.
func (p *product) place(g *image, base int) {
	p.base = base
	for _, t := range p.Taps {
		for c := 0; c < g.c; c += stepDepth {
			p.offsets = append(p.offsets, (t.DH*g.pw+t.DW)*g.pixel()+2*c)
		}
	}
}

// corner is the bytes from an image's start to a window's.
func (p *product) corner(g *image, a lower.Pixel) int {
	return ((a.N*g.ph+a.I*p.StepH+g.top)*g.pw + a.J*p.StepW + g.left) * g.pixel()
}

// inRow says whether so many pixels from one on are in a row of the grid.
func (p *product) inRow(a lower.Pixel, n int) bool { return a.J+n <= p.GridW }

// evenly says whether all rows of C are equally far apart.
func (p *product) evenly() bool {
	return p.C.Row == p.GridW*p.C.Col && p.C.Image == p.GridH*p.C.Row
}
