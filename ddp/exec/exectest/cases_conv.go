package exectest

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// convTable is the geometries of convolutions: n images of c channels, h×w, to
// o channels.
var convTable = []struct {
	name          string
	n, c, h, w, o int
	conv          graph.Conv
}{
	{"1x1", 2, 3, 4, 5, 4, graph.NewConv(1, 1, 0)},
	{"3x3", 2, 3, 5, 6, 4, graph.NewConv(3, 1, 1)},
	{"3x3 no padding", 1, 2, 5, 4, 3, graph.NewConv(3, 1, 0)},
	{"3x3 stride 2, even", 2, 2, 6, 8, 3, graph.NewConv(3, 2, 1)},
	{"3x3 stride 2, odd", 2, 2, 5, 7, 3, graph.NewConv(3, 2, 1)},
	{"4x4 stride 2", 2, 3, 8, 6, 4, graph.NewConv(4, 2, 1)},
	{"4x4 to one pixel", 3, 5, 4, 4, 2, graph.NewConv(4, 1, 0)},
	{"5x5 wide padding", 1, 2, 3, 3, 2, graph.NewConv(5, 1, 4)},
	{"3x3 on one pixel", 2, 3, 1, 1, 3, graph.NewConv(3, 1, 1)},
	{"stride above kernel", 2, 2, 8, 7, 3, graph.NewConv(2, 3, 0)},
	{"rows left over", 1, 2, 8, 9, 2, graph.NewConv(3, 4, 0)},
	{"one channel", 2, 1, 5, 5, 1, graph.NewConv(3, 1, 1)},
	{"odd channels", 1, 17, 4, 3, 19, graph.NewConv(3, 1, 1)},
	{"sixteen channels", 1, 16, 4, 4, 32, graph.NewConv(3, 1, 1)},
	{"groups", 2, 4, 5, 4, 6, graph.Conv{Window: graph.SquareWindow(3, 1, 1), Groups: 2}},
	{"depthwise", 2, 5, 5, 4, 5, graph.Conv{Window: graph.SquareWindow(3, 2, 1), Groups: 5}},
	{"depthwise, two each", 1, 3, 4, 4, 6, graph.Conv{Window: graph.SquareWindow(3, 1, 1), Groups: 3}},
	{"dilation", 2, 2, 7, 8, 3, conv(3, 3, 1, 1, [4]int{2, 2, 2, 2}, 2, 2)},
	{"dilation and stride", 1, 2, 9, 8, 2, conv(3, 2, 2, 3, [4]int{1, 0, 2, 1}, 2, 3)},
	{"asymmetric padding", 2, 2, 5, 5, 3, conv(3, 3, 1, 1, [4]int{0, 2, 1, 0}, 1, 1)},
	{"no images", 0, 2, 5, 5, 3, graph.NewConv(3, 1, 1)},
	{"everything unequal", 2, 2, 6, 7, 3, conv(2, 3, 2, 1, [4]int{1, 0, 0, 2}, 1, 2)},
}

// conv is a convolution with one group; pad is top, bottom, left, right.
func conv(kh, kw, sh, sw int, pad [4]int, dh, dw int) graph.Conv {
	return graph.Conv{Groups: 1, Window: graph.Window{
		KH: kh, KW: kw, StrideH: sh, StrideW: sw, DilH: dh, DilW: dw,
		PadT: pad[0], PadB: pad[1], PadL: pad[2], PadR: pad[3],
	}}
}

// convCases are the three ops of each geometry.
func convCases() []Case {
	var all []Case
	for _, c := range convTable {
		oh, ow := c.conv.Out(c.h, c.w)
		x, w, y := float(c.n, c.c, c.h, c.w), float(c.o, c.c/c.conv.Groups, c.conv.KH, c.conv.KW), float(c.n, c.o, oh, ow)
		taps := c.conv.KH * c.conv.KW
		all = append(all,
			Case{Name: "conv2d " + c.name, Args: args(x, w), Build: apply(graph.Conv2D{Conv: c.conv}), Tol: Sum, Terms: c.c / c.conv.Groups * taps},
			Case{Name: "conv2d_grad_x " + c.name, Args: args(w, y), Build: apply(graph.Conv2DGradX{Conv: c.conv, H: c.h, W: c.w}), Tol: Sum, Terms: c.o * taps},
			Case{Name: "conv2d_grad_w " + c.name, Args: args(x, y), Build: apply(graph.Conv2DGradW{Conv: c.conv}), Tol: Sum, Terms: c.n * oh * ow},
		)
	}
	return append(all, Case{Name: "conv_transpose2d", Args: args(float(2, 3, 3, 4), float(3, 2, 4, 4)), Tol: Sum, Terms: 48,
		Build: one(func(b *graph.Builder, x []graph.ID) graph.ID {
			return b.ConvTranspose2D(x[0], x[1], graph.NewConv(4, 2, 1))
		})})
}

// matmulCases are the four products of each set of extents (m, n, k).
func matmulCases() []Case {
	var all []Case
	for _, e := range [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 9, 33}, {1, 3, 64}, {16, 1, 4}, {8, 16, 32}, {3, 5, 0}, {0, 5, 7}, {3, 0, 7}} {
		m, n, k := e[0], e[1], e[2]
		for _, op := range []graph.MatMul{{}, {TransX: true}, {TransY: true}, {TransX: true, TransY: true}} {
			x, y := float(m, k), float(k, n)
			if op.TransX {
				x = float(k, m)
			}
			if op.TransY {
				y = float(n, k)
			}
			all = append(all, Case{Name: fmt.Sprintf("%s %v", op, e), Args: args(x, y), Build: apply(op), Tol: Sum, Terms: k})
		}
	}
	return append(all, Case{Name: "matmul of x with itself", Args: args(float(5, 5)), Tol: Sum, Terms: 5,
		Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.MatMul(x[0], x[0], true, false) })})
}
