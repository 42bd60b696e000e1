package amx

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/threads"
)

// image is images as bfloat16s, with borders of zeros wide enough for every window, so
// that none is cut.
type image struct {
	n, h, w, c int
	top, left  int // borders
	ph, pw     int // with borders
}

// pixel is the bytes of one.
func (g *image) pixel() int { return 2 * g.c }

func (g *image) bytes() int { return g.n * g.ph * g.pw * g.pixel() }

// bordered is images with borders for the windows of some products, and for the windows'
// corners, even where all taps lie before them: a corner is kept as a pointer, which Go's
// collector must find in the image.
func bordered(n, h, w, c int, list []product) image {
	g := image{n: n, h: h, w: w, c: c}
	bottom, right := 0, 0
	for i := range list {
		p := &list[i]
		for _, t := range p.Taps {
			g.top, g.left = max(g.top, -t.DH), max(g.left, -t.DW)
			bottom = max(bottom, (p.GridH-1)*p.StepH+max(t.DH, 0)-(h-1))
			right = max(right, (p.GridW-1)*p.StepW+max(t.DW, 0)-(w-1))
		}
	}
	g.ph, g.pw = g.top+h+bottom, g.left+w+right
	return g
}

// fill writes part i of n of the rows of all images.
func (g *image) fill(k *kernels, dst unsafe.Pointer, src []float32, i, n int) {
	lo, hi := threads.Part(g.n*g.ph, i, n)
	row, left, middle := g.pw*g.pixel(), g.left*g.pixel(), g.w*g.pixel()
	for r := lo; r < hi; r++ {
		d := unsafe.Add(dst, r*row)
		y := r%g.ph - g.top
		if y < 0 || y >= g.h {
			clear(unsafe.Slice((*byte)(d), row))
			continue
		}
		clear(unsafe.Slice((*byte)(d), left))
		k.round(unsafe.Add(d, left), &src[(r/g.ph*g.h+y)*g.w*g.c], g.w*g.c/lanes)
		clear(unsafe.Slice((*byte)(unsafe.Add(d, left+middle)), row-left-middle))
	}
}
