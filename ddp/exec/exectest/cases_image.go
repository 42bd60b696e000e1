package exectest

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// poolTable is the geometries of pools over h×w planes.
var poolTable = []struct {
	h, w int
	win  graph.Window
}{
	{4, 6, graph.SquareWindow(2, 2, 0)},
	{5, 7, graph.SquareWindow(2, 2, 0)},
	{5, 6, graph.SquareWindow(3, 2, 1)},
	{4, 4, graph.SquareWindow(3, 1, 1)},
	{4, 4, graph.SquareWindow(4, 1, 0)},
	{1, 1, graph.SquareWindow(1, 1, 0)},
	{6, 5, conv(2, 3, 1, 2, [4]int{1, 0, 0, 2}, 1, 1).Window},
	{7, 7, graph.SquareWindow(2, 3, 0)},
}

func poolCases() []Case {
	var all []Case
	for _, p := range poolTable {
		oh, ow := p.win.Out(p.h, p.w)
		x, y, n := float(2, 3, p.h, p.w), float(2, 3, oh, ow), p.win.KH*p.win.KW
		name := fmt.Sprintf("%v on %dx%d", p.win, p.h, p.w)
		all = append(all,
			Case{Name: "sumpool2d " + name, Args: args(x), Build: apply(graph.SumPool2D{Window: p.win}), Tol: Sum, Terms: n},
			Case{Name: "sumunpool2d " + name, Args: args(y), Build: apply(graph.SumUnpool2D{Window: p.win, H: p.h, W: p.w}), Tol: Sum, Terms: n},
			Case{Name: "maxpool2d " + name, Args: args(floatOf(Distinct, 2, 3, p.h, p.w)), Build: apply(graph.MaxPool2D{Window: p.win}), Tol: Exact},
			Case{Name: "avgpool2d " + name, Args: args(x), Tol: Sum, Terms: n,
				Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.AvgPool2D(x[0], p.win) })},
		)
	}
	dilated := conv(2, 3, 2, 1, [4]int{1, 1, 0, 2}, 2, 3).Window
	oh, ow := dilated.Out(6, 7)
	return append(all,
		Case{Name: "sumpool2d dilated", Args: args(float(1, 2, 6, 7)), Build: apply(graph.SumPool2D{Window: dilated}), Tol: Sum, Terms: 6},
		Case{Name: "sumunpool2d dilated", Args: args(float(1, 2, oh, ow)), Build: apply(graph.SumUnpool2D{Window: dilated, H: 6, W: 7}), Tol: Sum, Terms: 6},
		Case{Name: "maxpool2d below zero in padding", Args: args(floatOf(Between(-3, -1), 1, 2, 4, 4)), Build: apply(graph.MaxPool2D{Window: graph.SquareWindow(3, 2, 1)}), Tol: Exact, NoDiff: true},
		Case{Name: "maxpool2d of infinities", Args: args(floatOf(infinities, 2, 19, 5, 4)), Build: apply(graph.MaxPool2D{Window: graph.SquareWindow(2, 1, 1)}), Tol: Exact, NoDiff: true},
		Case{Name: "maxpool2d of many NaN", Args: args(floatOf(List(1, math.NaN(), 2, math.NaN(), math.NaN(), 3, math.Inf(1)), 2, 3, 5, 4)), Build: apply(graph.MaxPool2D{Window: graph.SquareWindow(2, 1, 1)}), Tol: Exact, NoDiff: true},
		Case{Name: "maxpool2d of nothing else", Args: args(floatOf(List(math.Inf(-1)), 1, 3, 3, 4)), Build: apply(graph.MaxPool2D{Window: graph.SquareWindow(3, 2, 1)}), Tol: Exact, NoDiff: true},
		Case{Name: "maxpool2d with ties", Args: args(floatOf(List(1, 0, 1), 1, 2, 5, 5)), Build: apply(graph.MaxPool2D{Window: graph.SquareWindow(3, 1, 1)}), Tol: Exact, NoDiff: true},
		Case{Name: "planegather", Args: args(float(2, 3, 4, 5), intOf(graph.I32, Below(20), 2, 3, 2, 7)), Build: apply(graph.PlaneGather{}), Tol: Exact},
		Case{Name: "planescatter", Args: args(float(2, 3, 2, 7), intOf(graph.I32, Below(20), 2, 3, 2, 7)), Build: apply(graph.PlaneScatter{H: 4, W: 5}), Tol: Sum, Terms: 14},
	)
}

// infinities are few: a pixel that takes nothing from one must not be NaN.
var infinities = List(0.5, 1, math.Inf(1), 2, 0.25, 3, 1.5, math.Inf(-1), 1, 2, 3, 4, 1, math.NaN(), 2, 5, 1)

func resampleCases() []Case {
	var all []Case
	for _, mode := range []graph.ResampleMode{graph.Nearest, graph.Bilinear} {
		for scale := 1; scale <= 4; scale++ {
			for _, s := range [][2]int{{1, 1}, {3, 5}, {2, 1}} {
				op := graph.Upsample2D{Mode: mode, Scale: scale}
				t := graph.Upsample2DT(op)
				all = append(all,
					Case{Name: fmt.Sprintf("%s %v", op, s), Args: args(float(2, 3, s[0], s[1])), Build: apply(op), Tol: Sum, Terms: 4},
					Case{Name: fmt.Sprintf("%s %v", t, s), Args: args(float(2, 3, s[0]*scale, s[1]*scale)), Build: apply(t), Tol: Sum, Terms: 4 * scale * scale},
					Case{Name: fmt.Sprintf("%s %v of infinities", op, s), Args: args(floatOf(infinities, 2, 19, s[0], s[1])), Build: apply(op), Tol: Near, NoDiff: true},
					Case{Name: fmt.Sprintf("%s %v of infinities", t, s), Args: args(floatOf(infinities, 2, 19, s[0]*scale, s[1]*scale)), Build: apply(t), Tol: Near, NoDiff: true},
				)
			}
		}
	}
	return all
}

func indexCases() []Case {
	twice := intOf(graph.I32, List(2, 0, 2, 4, 2), 5)
	return []Case{
		{Name: "gather rows", Args: args(float(5, 3), twice), Build: apply(graph.Gather{}), Tol: Exact},
		{Name: "gather scalars", Args: args(float(7), intOf(graph.I32, Below(7), 11)), Build: apply(graph.Gather{}), Tol: Exact},
		{Name: "gather images", Args: args(float(4, 2, 3, 3), intOf(graph.I32, Below(4), 6)), Build: apply(graph.Gather{}), Tol: Exact},
		{Name: "gather integers", Args: args(intOf(graph.I64, Below(1000), 5, 3), twice), Build: apply(graph.Gather{}), Tol: Exact},
		{Name: "scatter_add rows", Args: args(float(5, 3), twice), Build: apply(graph.ScatterAdd{Rows: 6}), Tol: Sum, Terms: 5},
		{Name: "scatter_add scalars", Args: args(float(11), intOf(graph.I32, Below(7), 11)), Build: apply(graph.ScatterAdd{Rows: 7}), Tol: Sum, Terms: 11},
		{Name: "scatter_add integers", Args: args(intOf(graph.I32, Below(1000), 5, 3), twice), Build: apply(graph.ScatterAdd{Rows: 5}), Tol: Exact},
	}
}
