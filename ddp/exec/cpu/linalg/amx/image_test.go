package amx

import (
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/lower"
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/graph"
)

// TestCorners: the corners of windows, which are kept as pointers, lie in the image, even
// where the windows themselves lie left of them and above.
func TestCorners(t *testing.T) {
	cases := append(enginetest.Convs(),
		enginetest.NewConvCase("taps before the corner only", 2, 32, 5, 7, 32, graph.NewConv(1, 1, 1)),
		enginetest.NewConvCase("taps far before the corner", 2, 32, 5, 7, 32, graph.NewConv(2, 2, 4)))
	for _, c := range cases {
		y := c
		y.H, y.W, y.C = c.OH, c.OW, c.O
		checkCorners(t, c.Name+", Forward", c, []product{{Product: lower.Forward(c.ConvProblem)}})
		var list []product
		for _, q := range lower.GradX(c.ConvProblem) {
			list = append(list, product{Product: q})
		}
		checkCorners(t, c.Name+", GradX", y, list)
	}
}

// checkCorners is of the windows of some products over the images of a case.
func checkCorners(t *testing.T, name string, c enginetest.ConvCase, list []product) {
	g := bordered(c.N, c.H, c.W, c.C, list)
	for i := range list {
		p := &list[i]
		if len(p.Taps) == 0 {
			continue // no window is looked at
		}
		for m := range p.Rows() {
			a := p.Pixel(m)
			if at, row := p.corner(&g, a), a.J*p.StepW+g.left; at < 0 || at >= g.bytes() || row >= g.pw {
				t.Errorf("%s: a corner is at byte %d of %d, pixel %d of %d in its row", name, at, g.bytes(), row, g.pw)
				return
			}
		}
	}
}

// TestPlainHasNoImage: behind dyT, which is all of the scratch memory then, no pointer lies.
func TestPlainHasNoImage(t *testing.T) {
	p := enginetest.NewConvCase("", 1, 32, 4, 8, 32, graph.NewConv(1, 1, 0)).ConvProblem
	k, ran := newGradient(over(t, 1, inGo), p), false
	prepare := k.prepare
	k.prepare = func(chunk int, ws *workspace) {
		if ran = true; k.o.image != nil {
			t.Error("there is a pointer to an image")
		}
		prepare(chunk, ws)
	}
	dw, x, dy, scratch := make([]float32, 32*32), make([]float32, 32*32), make([]float32, 32*32), micro.Aligned(k.Scratch()/4)
	if err := k.Run(unsafe.Pointer(&dw[0]), unsafe.Pointer(&x[0]), unsafe.Pointer(&dy[0]), unsafe.Pointer(&scratch[0])); err != nil || !ran {
		t.Errorf("ran is %t: %v", ran, err)
	}
}
