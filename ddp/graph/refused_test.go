package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// refused are applications that are wrong in one thing, and what the error must say.
func refused() []refusal {
	f32, i32 := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }, func(dims ...int) graph.Type { return graph.T(graph.I32, dims...) }
	x, img, odd := f32(2, 3), f32(1, 4, 8, 6), f32(1, 4, 1, 1)
	conv := graph.NewConv(1, 1, 0)
	none, groups3, wide, shifted := conv, conv, conv, graph.SquareWindow(1, 1, 1)
	none.Groups, groups3.Groups, wide.KW = 0, 3, 2
	return []refusal{
		{graph.Unary{}, []graph.Type{x}, "no unary function has number 0"},
		{graph.Unary{Fn: graph.NumUnaryFn}, []graph.Type{x}, fmt.Sprintf("no unary function has number %d", graph.NumUnaryFn)},
		{graph.Binary{}, []graph.Type{x, x}, "no binary function has number 0"},
		{graph.Binary{Fn: graph.NumBinaryFn}, []graph.Type{x, x}, fmt.Sprintf("no binary function has number %d", graph.NumBinaryFn)},
		{graph.Select{}, []graph.Type{img, x, x}, "three values of the same type"},
		{graph.Reduce{Fn: 3, Axes: 1}, []graph.Type{x}, "no reduction has number 3"},
		{graph.Reduce{Fn: graph.ReduceSum, Axes: 1 << 2}, []graph.Type{x}, "an axis is not below the rank 2"},
		{graph.AllReduce{Op: collective.Sum}, nil, "want at least one input"},
		{graph.AllReduce{Op: collective.Sum}, []graph.Type{x, graph.T(graph.F64, 2)}, "input 1 is f64[2], want one floating-point type"},
		{graph.Part{World: 2}, []graph.Type{i32(4)}, "a vector of a floating-point type"},
		{graph.MatMul{}, []graph.Type{i32(2, 2), i32(2, 2)}, "the same floating-point type"},
		{graph.MatMul{}, []graph.Type{f32(2, 2), graph.T(graph.F64, 2, 2)}, "the same floating-point type"},

		{graph.Conv2D{Conv: conv}, []graph.Type{i32(1, 4, 8, 6), i32(4, 4, 1, 1)}, "want one floating-point type"},
		{graph.Conv2D{Conv: wide}, []graph.Type{img, f32(4, 4, 1, 1)}, "does not have a 1x2 kernel"},
		{graph.Conv2D{Conv: none}, []graph.Type{img, f32(4, 4, 1, 1)}, "0 groups do not divide 4 output channels"},
		{graph.Conv2DGradW{Conv: none}, []graph.Type{img, img}, "C divisible by 0 groups"},
		{graph.Conv2DGradW{Conv: groups3}, []graph.Type{img, f32(1, 3, 8, 6)}, "C divisible by 3 groups"},
		{graph.Conv2DGradW{Conv: conv}, []graph.Type{img, f32(1, 4, 8)}, "want images (N,C,H,W) and (N,O,OH,OW)"},
		{graph.Conv2DGradW{Conv: conv}, []graph.Type{img, f32(1, 4, 8, 5)}, "the output side is [1,4,8,5], want [1,4,8,6]"},
		{graph.Conv2DGradW{Conv: conv}, []graph.Type{img, f32(2, 4, 8, 6)}, "the output side is [2,4,8,6], want [1,4,8,6]"},
		{graph.Conv2DGradX{Conv: conv, H: 8, W: 6}, []graph.Type{f32(4, 4), img}, "want weights (O,C/groups,KH,KW)"},
		{graph.Conv2DGradX{Conv: conv, H: 8, W: 6}, []graph.Type{f32(3, 4, 1, 1), img}, "the output side is [1,4,8,6], want [1,3,8,6]"},

		{graph.SumPool2D{Window: graph.SquareWindow(2, 2, 0)}, []graph.Type{i32(1, 4, 8, 6)}, "want images (N,C,H,W)"},
		{graph.SumPool2D{Window: shifted}, []graph.Type{f32(1, 4, 0, 6)}, "a 0x6 image is empty"},
		{graph.SumPool2D{Window: shifted}, []graph.Type{f32(1, 4, 8, 0)}, "a 8x0 image is empty"},
		{graph.SumUnpool2D{Window: graph.SquareWindow(1, 1, 0), H: 4, W: 8}, []graph.Type{f32(1, 4, 8, 6, 1)}, "want images (N,C,H,W)"},
		{graph.MaxPool2D{Window: graph.SquareWindow(1, 1, 0)}, []graph.Type{f32(1, 1, 46341, 46341)}, "more pixels than places in i32"},
		{graph.PlaneGather{}, []graph.Type{img, i32(2, 4, 1, 1)}, "i32 places (N,C,OH,OW)"},
		{graph.PlaneGather{}, []graph.Type{img, i32(1, 4, 1)}, "i32 places (N,C,OH,OW)"},
		{graph.PlaneGather{}, []graph.Type{img, odd}, "i32 places (N,C,OH,OW)"},
		{graph.PlaneScatter{H: 2, W: 2}, []graph.Type{odd, odd}, "values and i32 places"},
		{graph.PlaneScatter{H: 0, W: 2}, []graph.Type{odd, i32(1, 4, 1, 1)}, "values and i32 places"},
		{graph.PlaneScatter{H: 2, W: 0}, []graph.Type{odd, i32(1, 4, 1, 1)}, "values and i32 places"},
		{graph.Upsample2D{Mode: 3, Scale: 2}, []graph.Type{img}, "and a mode"},
		{graph.Upsample2D{Mode: graph.Nearest, Scale: 2}, []graph.Type{i32(1, 4, 8, 6)}, "want images (N,C,H,W)"},
		{graph.Upsample2DT{Mode: graph.Nearest, Scale: 2}, []graph.Type{f32(1, 4, 7, 6)}, "divisible by the scale 2"},
		{graph.Upsample2DT{Mode: graph.Nearest, Scale: -2}, []graph.Type{img}, "divisible by the scale -2"},

		{graph.Transpose{Perm: graph.D(0, 2)}, []graph.Type{x}, "[0,2] is not a permutation"},
		{graph.Transpose{Perm: graph.D(-1, 0)}, []graph.Type{x}, "[-1,0] is not a permutation"},
		{graph.Slice{Start: graph.D(1), Limit: graph.D(1), Step: graph.D(1)}, []graph.Type{f32(3)}, "[1:1:1] is not inside its 3 entries"},
		{graph.Slice{Start: graph.D(-1), Limit: graph.D(1), Step: graph.D(1)}, []graph.Type{f32(3)}, "[-1:1:1] is not inside its 3 entries"},
		{graph.Slice{Start: graph.D(0), Limit: graph.D(1), Step: graph.D(0)}, []graph.Type{f32(3)}, "[0:1:0] is not inside its 3 entries"},
		{graph.Slice{Start: graph.D(0), Limit: graph.D(1), Step: graph.D(1, 1)}, []graph.Type{f32(3)}, "want 1 axes"},
		{graph.Pad{Lo: graph.D(1), Hi: graph.D(-1), Gap: graph.D(0)}, []graph.Type{f32(3)}, "a padding is negative"},
		{graph.Pad{Lo: graph.D(1), Hi: graph.D(1), Gap: graph.D(-1)}, []graph.Type{f32(3)}, "a padding is negative"},
		{graph.Concat{Axis: -1}, []graph.Type{x, x}, "axis -1 of f32[2,3]"},
		{graph.Concat{Axis: 0}, []graph.Type{x, f32(2, 4)}, "input 1 is f32[2,4], which does not fit f32[2,3]"},
		{graph.Concat{Axis: 1}, []graph.Type{x, f32(2)}, "input 1 is f32[2], which does not fit f32[2,3]"},
		{graph.Gather{}, []graph.Type{f32(), i32(2)}, "want rows (V,…)"},
		{graph.ScatterAdd{Rows: 4}, []graph.Type{f32(), i32(2)}, "want rows (n,…)"},
		{graph.ScatterAdd{Rows: 4}, []graph.Type{x, i32(2, 1)}, "i32 indices (n)"},
		{graph.Gather{}, []graph.Type{x, f32(2)}, "i32 indices (n)"},
		{graph.Gather{}, []graph.Type{x, i32(2, 1)}, "i32 indices (n)"},
		{graph.ScatterAdd{Rows: 4}, []graph.Type{x, f32(2)}, "i32 indices (n)"},
		{graph.ScatterAdd{Rows: 0}, []graph.Type{x, i32(2)}, "i32 indices (n)"},
		{graph.Draw{Dist: 0, Type: x}, []graph.Type{graph.KeyType}, "want a key of type i64[3]"},
		{graph.Draw{Dist: 4, Type: x}, []graph.Type{graph.KeyType}, "want a key of type i64[3]"},
		{graph.Iota{Type: x, Axis: -1}, nil, "axis -1 of f32[2,3]"},
		{graph.Const{Type: graph.Type{DType: graph.U8 + 1}}, nil, "no element type has number"},
		{graph.AllGather{World: 2}, []graph.Type{f32(1 << 48)}, "has more than 2^48 elements"},
		{graph.Part{World: 2}, []graph.Type{f32(3)}, "3 elements are no 2 equal parts"},
	}
}

type refusal struct {
	op   graph.Op
	in   []graph.Type
	want string
}

// wrongWindows are SquareWindow(2, 1, 1) with one thing wrong.
func wrongWindows() []refusal {
	var all []refusal
	for _, spoil := range []func(w *graph.Window){
		func(w *graph.Window) { w.KH = 0 }, func(w *graph.Window) { w.KW = 0 },
		func(w *graph.Window) { w.StrideH = 0 }, func(w *graph.Window) { w.StrideW = 0 },
		func(w *graph.Window) { w.DilH = 0 }, func(w *graph.Window) { w.DilW = 0 },
		func(w *graph.Window) { w.PadT = -1 }, func(w *graph.Window) { w.PadB = -1 },
		func(w *graph.Window) { w.PadL = -1 }, func(w *graph.Window) { w.PadR = -1 },
	} {
		w := graph.SquareWindow(2, 1, 1)
		spoil(&w)
		all = append(all, refusal{graph.SumPool2D{Window: w}, []graph.Type{graph.T(graph.F32, 1, 1, 8, 8)}, "a kernel, stride or dilation below 1 or a negative padding"})
	}
	for _, spoil := range []func(w *graph.Window){
		func(w *graph.Window) { w.PadT = 2 }, func(w *graph.Window) { w.PadB = 2 },
		func(w *graph.Window) { w.PadL = 2 }, func(w *graph.Window) { w.PadR = 2 },
		func(w *graph.Window) { w.DilH = 2 }, func(w *graph.Window) { w.DilW = 2 },
	} {
		w := graph.SquareWindow(2, 1, 1)
		spoil(&w)
		all = append(all, refusal{graph.MaxPool2D{Window: w}, []graph.Type{graph.T(graph.F32, 1, 1, 8, 8)}, "the padding must be smaller than the kernel, and the dilation 1"})
	}
	return all
}

// TestRefused makes each wrong application alone.
func TestRefused(t *testing.T) {
	for _, c := range append(refused(), wrongWindows()...) {
		var b graph.Builder
		var in []graph.ID
		for i, typ := range c.in {
			in = append(in, b.Input(fmt.Sprint(i), typ))
		}
		b.Apply(c.op, in...)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v: got %v, want %q", c.op, c.in, err, c.want)
		}
	}
}

// The largest of each kind is none too large: an image of the most places, an array of the
// most elements, and one of none with long axes.
func TestLargest(t *testing.T) {
	var b graph.Builder
	b.MaxPool2D(b.Input("sky", graph.T(graph.F32, 1, 1, 46340, 46340)), graph.SquareWindow(1, 1, 0))
	b.Input("all", graph.T(graph.F32, 1<<24, 1<<24))
	b.Input("none", graph.T(graph.F32, 1<<40, 0, 1<<8))
	if b.Err() != nil {
		t.Error(b.Err())
	}
	b.Input("more", graph.T(graph.F32, 1<<40, 0, 1<<9))
	if b.Err() == nil {
		t.Error("the strides of 2^49 elements are in a type")
	}
}
