package graph_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// badGraphs are mistakes and the whole sentence each must give.
var badGraphs = []struct {
	name  string
	build func(b *graph.Builder, x, img, idx graph.ID)
	want  string
}{
	{"add of shapes that do not fit", func(b *graph.Builder, x, img, _ graph.ID) { b.Add(x, b.Zeros(graph.T(graph.F32, 4))) },
		"add: shapes [2,3] and [4] do not fit together"},
	{"mul of two element types", func(b *graph.Builder, x, _, _ graph.ID) { b.Mul(x, b.Input("d", graph.T(graph.F64, 2, 3))) },
		"mul[f32[2,3] f64[2,3]]: want two values of the same type"},
	{"division of integers", func(b *graph.Builder, _, _, idx graph.ID) { b.Div(idx, idx) },
		"div[i32[4] i32[4]]: want a floating-point type"},
	{"function of integers", func(b *graph.Builder, _, _, idx graph.ID) { b.Exp(idx) },
		"exp[i32[4]]: want a floating-point type"},
	{"parameter nan", func(b *graph.Builder, x, _, _ graph.ID) { b.Shift(x, math.NaN()) },
		"shift: the parameter is not a number"},
	{"unknown function", func(b *graph.Builder, x, _, _ graph.ID) { b.Apply(graph.Unary{Fn: 99}, x) },
		"UnaryFn(99)[f32[2,3]]: no unary function has number 99"},
	{"unknown pair function", func(b *graph.Builder, x, _, _ graph.ID) { b.Apply(graph.Binary{Fn: 99}, x, x) },
		"BinaryFn(99)[f32[2,3] f32[2,3]]: no binary function has number 99"},
	{"number of inputs", func(b *graph.Builder, x, _, _ graph.ID) { b.Apply(graph.Select{}, x, x) },
		"select[f32[2,3] f32[2,3]]: want 3 inputs, got 2"},
	{"select of two types", func(b *graph.Builder, x, img, _ graph.ID) { b.Select(x, x, img) },
		"select[f32[2,3] f32[2,3] f32[1,4,8,8]]: want three values of the same type"},
	{"matmul inner extents", func(b *graph.Builder, x, _, _ graph.ID) { b.MatMul(x, x, false, false) },
		"matmul{x y}[f32[2,3] f32[2,3]]: the inner extents 3 and 2 differ"},
	{"matmul of images", func(b *graph.Builder, x, img, _ graph.ID) { b.MatMul(x, img, false, false) },
		"matmul{x y}[f32[2,3] f32[1,4,8,8]]: want two matrices of the same floating-point type"},
	{"conv channels", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F32, 8, 3, 3, 3)), graph.NewConv(3, 1, 1))
	}, "conv2d{3x3 stride 1x1 pad 1,1,1,1 dilation 1x1 groups 1}[f32[1,4,8,8] f32[8,3,3,3]]: the image has 4 channels, the weight wants 3"},
	{"conv kernel", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F32, 8, 4, 5, 5)), graph.NewConv(3, 1, 1))
	}, "conv2d{3x3 stride 1x1 pad 1,1,1,1 dilation 1x1 groups 1}[f32[1,4,8,8] f32[8,4,5,5]]: the weight [8,4,5,5] does not have a 3x3 kernel"},
	{"conv larger than the image", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F32, 8, 4, 9, 9)), graph.NewConv(9, 1, 0))
	}, "conv2d{9x9 stride 1x1 pad 0,0,0,0 dilation 1x1 groups 1}[f32[1,4,8,8] f32[8,4,9,9]]: the window 9x9 stride 1x1 pad 0,0,0,0 dilation 1x1 does not fit into a 8x8 image"},
	{"conv groups", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F32, 8, 1, 1, 1)), graph.Conv{Window: graph.SquareWindow(1, 1, 0), Groups: 3})
	}, "conv2d{1x1 stride 1x1 pad 0,0,0,0 dilation 1x1 groups 3}[f32[1,4,8,8] f32[8,1,1,1]]: 3 groups do not divide 8 output channels"},
	{"conv stride 0", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F32, 8, 4, 1, 1)), graph.NewConv(1, 0, 0))
	}, "conv2d{1x1 stride 0x0 pad 0,0,0,0 dilation 1x1 groups 1}[f32[1,4,8,8] f32[8,4,1,1]]: the window 1x1 stride 0x0 pad 0,0,0,0 dilation 1x1 has a kernel, stride or dilation below 1 or a negative padding"},
	{"conv of a matrix", func(b *graph.Builder, x, _, _ graph.ID) { b.Conv2D(x, x, graph.NewConv(1, 1, 0)) },
		"conv2d{1x1 stride 1x1 pad 0,0,0,0 dilation 1x1 groups 1}[f32[2,3] f32[2,3]]: want images (N,C,H,W) and weights (O,C/groups,KH,KW)"},
	{"transposed conv to nothing", func(b *graph.Builder, _, _, _ graph.ID) {
		b.ConvTranspose2D(b.Zeros(graph.T(graph.F32, 1, 2, 1, 1)), b.Zeros(graph.T(graph.F32, 2, 2, 3, 3)), graph.NewConv(3, 1, 2))
	}, "conv2d_grad_x{3x3 stride 1x1 pad 2,2,2,2 dilation 1x1 groups 1 to -1x-1}[f32[2,2,3,3] f32[1,2,1,1]]: a -1x-1 image is empty"},
	{"transposed conv of a matrix", func(b *graph.Builder, x, _, _ graph.ID) { b.ConvTranspose2D(x, x, graph.NewConv(3, 1, 1)) },
		"conv_transpose2d: want images (N,C,H,W), got f32[2,3]"},
	{"pool of a matrix", func(b *graph.Builder, x, _, _ graph.ID) { b.AvgPool2D(x, graph.SquareWindow(2, 2, 0)) },
		"sumpool2d{2x2 stride 2x2 pad 0,0,0,0 dilation 1x1}[f32[2,3]]: want images (N,C,H,W)"},
	{"max pool padding", func(b *graph.Builder, _, img, _ graph.ID) { b.MaxPool2D(img, graph.SquareWindow(2, 2, 2)) },
		"maxpool2d{2x2 stride 2x2 pad 2,2,2,2 dilation 1x1}[f32[1,4,8,8]]: the padding must be smaller than the kernel, and the dilation 1"},
	{"upsampling by 0", func(b *graph.Builder, _, img, _ graph.ID) { b.Upsample2D(img, graph.Nearest, 0) },
		"upsample2d{nearest x0}[f32[1,4,8,8]]: want images (N,C,H,W), a scale of at least 1, and a mode"},
	{"reshape", func(b *graph.Builder, x, _, _ graph.ID) { b.Reshape(x, graph.D(4, 2)) },
		"reshape[4,2][f32[2,3]]: 6 elements cannot become [4,2]"},
	{"reshape to negative extents", func(b *graph.Builder, x, _, _ graph.ID) { b.Reshape(x, graph.D(-2, -3)) },
		"reshape[-2,-3][f32[2,3]]: the shape [-2,-3] has a negative extent"},
	{"broadcast", func(b *graph.Builder, x, _, _ graph.ID) { b.BroadcastTo(x, graph.D(4, 3)) },
		"broadcast[4,3][f32[2,3]]: axis 0 has extent 2, not 1 or 4"},
	{"broadcast to fewer axes", func(b *graph.Builder, x, _, _ graph.ID) { b.BroadcastTo(x, graph.D(3)) },
		"broadcast[3][f32[2,3]]: want rank 1"},
	{"transpose", func(b *graph.Builder, x, _, _ graph.ID) { b.Transpose(x, 0, 0) },
		"transpose[0,0][f32[2,3]]: [0,0] is not a permutation"},
	{"transpose of too few axes", func(b *graph.Builder, x, _, _ graph.ID) { b.Transpose(x, 0) },
		"transpose[0][f32[2,3]]: want 2 axes, got the permutation [0]"},
	{"max pool of more pixels than places", func(b *graph.Builder, _, _, _ graph.ID) {
		b.MaxPool2D(b.Input("sky", graph.T(graph.F32, 1, 1, 1<<16, 1<<16)), graph.SquareWindow(2, 2, 0))
	}, "maxpool2d{2x2 stride 2x2 pad 0,0,0,0 dilation 1x1}[f32[1,1,65536,65536]]: an image of 65536x65536 has more pixels than places in i32"},
	{"slice outside", func(b *graph.Builder, x, _, _ graph.ID) { b.Slice(x, 1, 2, 5, 1) },
		"slice{[0,2] to [2,5] step [1,1]}[f32[2,3]]: axis 1: [2:5:1] is not inside its 3 entries"},
	{"slice of an axis that is not there", func(b *graph.Builder, x, _, _ graph.ID) { b.Slice(x, 2, 0, 1, 1) },
		"slice: axis 2 of [2,3]"},
	{"slice of a negative axis", func(b *graph.Builder, x, _, _ graph.ID) { b.Slice(x, -1, 0, 1, 1) },
		"slice: axis -1 of [2,3]"},
	{"padding of an axis that is not there", func(b *graph.Builder, x, _, _ graph.ID) { b.Pad(x, 2, 0, 1) },
		"pad: axis 2 of [2,3]"},
	{"padding of a negative axis", func(b *graph.Builder, x, _, _ graph.ID) { b.Pad(x, -1, 0, 1) },
		"pad: axis -1 of [2,3]"},
	{"negative padding", func(b *graph.Builder, x, _, _ graph.ID) { b.Pad(x, 0, -1, 0) },
		"pad{[-1,0], [0,0], gap [0,0]}[f32[2,3]]: axis 0: a padding is negative or the axis is empty"},
	{"concat", func(b *graph.Builder, x, img, _ graph.ID) { b.Concat(0, x, img) },
		"concat{axis 0}[f32[2,3] f32[1,4,8,8]]: input 1 is f32[1,4,8,8], which does not fit f32[2,3]"},
	{"concat of nothing", func(b *graph.Builder, _, _, _ graph.ID) { b.Concat(0) },
		"concat{axis 0}[]: want at least one input"},
	{"sum of an axis that is not there", func(b *graph.Builder, x, _, _ graph.ID) { b.Sum(x, 2) },
		"reduce_sum: axis 2 of [2,3]"},
	{"mean of an axis that is not there", func(b *graph.Builder, x, _, _ graph.ID) { b.MeanKeep(x, -1) },
		"reduce_sum: axis -1 of [2,3]"},
	{"mean of nothing", func(b *graph.Builder, _, _, _ graph.ID) { b.Mean(b.Zeros(graph.T(graph.F32, 0, 3)), 0) },
		"mean: the axes [0] of [0,3] hold no elements"},
	{"max of nothing", func(b *graph.Builder, _, _, _ graph.ID) { b.MaxKeep(b.Zeros(graph.T(graph.F32, 0, 3)), 0) },
		"reduce_max{axes [0]}[f32[0,3]]: axis 0 is empty: it has no maximum"},
	{"gather by floats", func(b *graph.Builder, x, _, _ graph.ID) { b.Gather(x, x) },
		"gather[f32[2,3] f32[2,3]]: want rows (V,…) and i32 indices (n)"},
	{"scatter of other rows", func(b *graph.Builder, x, _, idx graph.ID) { b.ScatterAdd(x, idx, 4) },
		"scatter_add{4 rows}[f32[2,3] i32[4]]: want rows (n,…) and i32 indices (n)"},
	{"draw without a key", func(b *graph.Builder, x, _, _ graph.ID) { b.Draw(x, graph.Normal, 9, 0, b.Type(x)) },
		"draw{normal purpose 9.0}[f32[2,3]]: want a key of type i64[3] and a floating-point result with at least one axis"},
	{"reduction of integers over ranks", func(b *graph.Builder, _, _, idx graph.ID) { b.AllReduce(collective.Sum, "a", idx) },
		`allreduce{sum "a"}[i32[4]]: input 0 is i32[4], want one floating-point type`},
	{"maximum over ranks", func(b *graph.Builder, x, _, _ graph.ID) { b.AllReduce(collective.Max, "a", x) },
		`allreduce{max "a"}[f32[2,3]]: want at least one input, and sum or mean`},
	{"parts of a matrix", func(b *graph.Builder, x, _, _ graph.ID) { b.ReduceScatter(collective.Sum, 2, "a", x) },
		`reducescatter{sum 2 ranks "a"}[f32[2,3]]: want a vector of a floating-point type, and at least one rank`},
	{"largest parts", func(b *graph.Builder, x, _, _ graph.ID) { b.ReduceScatter(collective.Max, 2, "a", x) },
		`reducescatter{max 2 ranks "a"}[f32[2,3]]: want sum or mean`},
	{"parts that are not equal", func(b *graph.Builder, x, _, _ graph.ID) { b.Part(4, b.Reshape(x, graph.D(6))) },
		"part{4 ranks}[f32[6]]: 6 elements are no 4 equal parts: pad the vector"},
	{"a vector of no ranks", func(b *graph.Builder, x, _, _ graph.ID) { b.AllGather(0, "a", b.Reshape(x, graph.D(6))) },
		`allgather{0 ranks "a"}[f32[6]]: want a vector of a floating-point type, and at least one rank`},
	{"iota", func(b *graph.Builder, _, _, _ graph.ID) { b.Iota(graph.T(graph.I32, 3), 1) },
		"iota{axis 1}[]: axis 1 of i32[3]"},
	{"a name with two types", func(b *graph.Builder, _, _, _ graph.ID) { b.Var("x", graph.T(graph.F32, 2, 3)) },
		`var "x" f32[2,3]: the name is taken by input "x" f32[2,3]`},
	{"a name with two shapes", func(b *graph.Builder, _, _, _ graph.ID) { b.Input("x", graph.T(graph.F32, 3, 2)) },
		`input "x" f32[3,2]: the name is taken by input "x" f32[2,3]`},
	{"a type that does not exist", func(b *graph.Builder, _, _, _ graph.ID) { b.Input("n", graph.Type{}) },
		`input "n"[]: no element type has number 0`},
	{"too large", func(b *graph.Builder, _, _, _ graph.ID) { b.Zeros(graph.T(graph.F32, 1<<40, 1<<40)) },
		"const 0[]: the shape [1099511627776,1099511627776] has more than 2^48 elements"},
	{"no value", func(b *graph.Builder, x, _, _ graph.ID) { b.Add(x, 0) },
		"add: not a value of this graph (ID 0)"},
	{"a value of another graph", func(b *graph.Builder, _, _, _ graph.ID) { b.Tanh(12345) },
		"tanh: input 0 is not a value of this graph (ID 12345)"},
	{"a value that is the next to be made", func(b *graph.Builder, _, _, idx graph.ID) { b.Tanh(idx + 1) },
		"tanh: input 0 is not a value of this graph (ID 4)"},
	{"output twice", func(b *graph.Builder, x, _, _ graph.ID) { b.Output("y", x); b.Output("y", x) },
		`output "y" is declared twice`},
	{"output of nothing", func(b *graph.Builder, _, _, _ graph.ID) { b.Output("y", -1) },
		`output "y": not a value of this graph (ID -1)`},
	{"assignment to an input", func(b *graph.Builder, x, _, _ graph.ID) { b.Assign(x, x) },
		`assign: input "x" is not a variable`},
	{"assignment to a result", func(b *graph.Builder, x, _, _ graph.ID) { b.Assign(b.Exp(x), x) },
		"assign: exp is not a variable"},
	{"assignment of another type", func(b *graph.Builder, x, img, _ graph.ID) { b.Assign(b.Var("w", b.Type(x)), img) },
		`assign "w": want f32[2,3], got f32[1,4,8,8]`},
	{"assignment twice", func(b *graph.Builder, x, _, _ graph.ID) {
		w := b.Var("w", b.Type(x))
		b.Assign(w, x)
		b.Assign(w, b.Neg(x))
	}, `assign "w": assigned twice`},
	{"assignment to nothing", func(b *graph.Builder, x, _, _ graph.ID) { b.Assign(0, x) },
		"assign: not a value of this graph (ID 0)"},
	{"gradient of nothing", func(b *graph.Builder, x, _, _ graph.ID) { b.Grad(0, x) },
		"gradient of: not a value of this graph (ID 0)"},
	{"gradient with respect to nothing", func(b *graph.Builder, x, _, _ graph.ID) { b.Grad(x, 999) },
		"gradient with respect to: not a value of this graph (ID 999)"},
	{"cotangent of another type", func(b *graph.Builder, x, img, _ graph.ID) { b.Pullback([]graph.ID{x}, []graph.ID{img}, x) },
		"pullback: cotangent 0 is f32[1,4,8,8], want f32[2,3]"},
	{"conv of two element types", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Conv2D(img, b.Var("w", graph.T(graph.F64, 8, 4, 1, 1)), graph.NewConv(1, 1, 0))
	}, "conv2d{1x1 stride 1x1 pad 0,0,0,0 dilation 1x1 groups 1}[f32[1,4,8,8] f64[8,4,1,1]]: want one floating-point type"},
	{"max pool with all of a window in the padding at its right", func(b *graph.Builder, _, img, _ graph.ID) {
		w := graph.SquareWindow(2, 2, 0)
		w.PadR = 2
		b.MaxPool2D(img, w)
	}, "maxpool2d{2x2 stride 2x2 pad 0,0,0,2 dilation 1x1}[f32[1,4,8,8]]: the padding must be smaller than the kernel, and the dilation 1"},
	{"max pool with dilation", func(b *graph.Builder, _, img, _ graph.ID) {
		w := graph.SquareWindow(2, 2, 0)
		w.DilW = 2
		b.MaxPool2D(img, w)
	}, "maxpool2d{2x2 stride 2x2 pad 0,0,0,0 dilation 1x2}[f32[1,4,8,8]]: the padding must be smaller than the kernel, and the dilation 1"},
	{"windows of another image", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Apply(graph.SumUnpool2D{Window: graph.SquareWindow(2, 2, 0), H: 8, W: 16}, img)
	}, "sumunpool2d{2x2 stride 2x2 pad 0,0,0,0 dilation 1x1 to 8x16}[f32[1,4,8,8]]: it is not the pooling of f32[1,4,8,16]"},
	{"places for other channels", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Apply(graph.PlaneGather{}, img, b.Zeros(graph.T(graph.I32, 1, 3, 8, 8)))
	}, "planegather[f32[1,4,8,8] i32[1,3,8,8]]: want images (N,C,H,W) and i32 places (N,C,OH,OW)"},
	{"places of fewer values", func(b *graph.Builder, _, img, _ graph.ID) {
		b.Apply(graph.PlaneScatter{H: 9, W: 9}, img, b.Zeros(graph.T(graph.I32, 1, 4, 8, 7)))
	}, "planescatter{to 9x9}[f32[1,4,8,8] i32[1,4,8,7]]: want values and i32 places, both (N,C,OH,OW)"},
	{"halving of an odd width", func(b *graph.Builder, _, _, _ graph.ID) {
		b.Apply(graph.Upsample2DT{Mode: graph.Nearest, Scale: 2}, b.Input("odd", graph.T(graph.F32, 1, 1, 4, 5)))
	}, "upsample2d_t{nearest x2}[f32[1,1,4,5]]: want images (N,C,H,W) with H and W divisible by the scale 2"},
	{"reshape of a number", func(b *graph.Builder, _, _, _ graph.ID) { b.Reshape(b.Ones(graph.T(graph.F32, 2, 3)), graph.D(4, 2)) },
		"reshape[4,2][f32[2,3]]: 6 elements cannot become [4,2]"},
	{"broadcast of a number", func(b *graph.Builder, _, _, _ graph.ID) { b.BroadcastTo(b.Ones(graph.T(graph.F32, 2)), graph.D(4, 3)) },
		"broadcast[4,3][f32[1,2]]: axis 1 has extent 2, not 1 or 3"},
	{"slice one too far", func(b *graph.Builder, x, _, _ graph.ID) { b.Slice(x, 1, 2, 4, 1) },
		"slice{[0,2] to [2,4] step [1,1]}[f32[2,3]]: axis 1: [2:4:1] is not inside its 3 entries"},
	{"padding of nothing", func(b *graph.Builder, _, _, _ graph.ID) { b.Pad(b.Input("none", graph.T(graph.F32, 0)), 0, 1, 1) },
		"pad{[1], [1], gap [0]}[f32[0]]: axis 0: a padding is negative or the axis is empty"},
	{"concat of two element types", func(b *graph.Builder, x, _, _ graph.ID) { b.Concat(0, x, b.Input("d", graph.T(graph.F64, 2, 3))) },
		"concat{axis 0}[f32[2,3] f64[2,3]]: input 1 is f64[2,3], which does not fit f32[2,3]"},
	{"draw of one number", func(b *graph.Builder, _, _, _ graph.ID) {
		b.Draw(b.Input("key", graph.KeyType), graph.Normal, 9, 0, graph.T(graph.F32))
	}, "draw{normal purpose 9.0}[i64[3]]: want a key of type i64[3] and a floating-point result with at least one axis"},
	{"draw of integers", func(b *graph.Builder, _, _, _ graph.ID) {
		b.Draw(b.Input("key", graph.KeyType), graph.Normal, 9, 0, graph.T(graph.I32, 4))
	}, "draw{normal purpose 9.0}[i64[3]]: want a key of type i64[3] and a floating-point result with at least one axis"},
	{"assignment of another element type", func(b *graph.Builder, x, _, _ graph.ID) { b.Assign(b.Var("w", graph.T(graph.F64, 2, 3)), x) },
		`assign "w": want f64[2,3], got f32[2,3]`},
	{"cotangent of another element type", func(b *graph.Builder, x, _, _ graph.ID) {
		b.Pullback([]graph.ID{x}, []graph.ID{b.Ones(graph.T(graph.F64, 2, 3))}, x)
	}, "pullback: cotangent 0 is f64[2,3], want f32[2,3]"},
	{"direction of another element type", func(b *graph.Builder, x, _, _ graph.ID) {
		b.HVP(b.Sum(x), []graph.ID{x}, []graph.ID{b.Ones(graph.T(graph.F64, 2, 3))})
	}, "hessian-vector product: direction 0 is f64[2,3], want f32[2,3]"},
	{"output twice, of two values", func(b *graph.Builder, x, img, _ graph.ID) { b.Output("y", x); b.Output("y", img) },
		`output "y" is declared twice`},
	{"zero of another element type", func(b *graph.Builder, x, _, _ graph.ID) { b.Add(x, b.Zeros(graph.T(graph.F64, 2, 3))) },
		"add[f32[2,3] f64[2,3]]: want two values of the same type"},
	{"pullback of nothing", func(b *graph.Builder, x, _, _ graph.ID) { b.Pullback([]graph.ID{0}, []graph.ID{x}, x) },
		"pullback: not a value of this graph (ID 0)"},
	{"cotangent that is no value", func(b *graph.Builder, x, _, _ graph.ID) { b.Pullback([]graph.ID{x}, []graph.ID{0}, x) },
		"pullback: not a value of this graph (ID 0)"},
	{"sum of none and three", func(b *graph.Builder, _, _, _ graph.ID) {
		b.Add(b.Input("none", graph.T(graph.F32, 0)), b.Input("three", graph.T(graph.F32, 3)))
	}, "add: shapes [0] and [3] do not fit together"},
	{"cotangent too many", func(b *graph.Builder, x, _, _ graph.ID) { b.Pullback([]graph.ID{x}, []graph.ID{x, x}, x) },
		"pullback: 1 values and 2 cotangents"},
	{"cotangent missing", func(b *graph.Builder, x, _, _ graph.ID) { b.Pullback([]graph.ID{x}, nil, x) },
		"pullback: 1 values and 0 cotangents"},
}

// TestErrors makes each mistake in the scope "energy/conv3", goes on using the
// builder, and wants the first error alone.
func TestErrors(t *testing.T) {
	for _, c := range badGraphs {
		t.Run(c.name, func(t *testing.T) {
			var b graph.Builder
			x, img := b.Input("x", graph.T(graph.F32, 2, 3)), b.Input("img", graph.T(graph.F32, 1, 4, 8, 8))
			idx := b.Input("idx", graph.T(graph.I32, 4))
			b.Scope("energy", func() { b.Scope("conv3", func() { c.build(&b, x, img, idx) }) })
			made := b.NumNodes()
			useAfterError(&b, x)
			if out := b.Apply(graph.Unary{Fn: graph.Erf}, x); out != nil || b.NumNodes() != made {
				t.Errorf("after the error there are %v and %d nodes more", out, b.NumNodes()-made)
			}
			g, err := b.Build()
			if want := "energy/conv3: " + c.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if g != nil || !errors.Is(b.Err(), err) {
				t.Errorf("Build gave %v and an error; Err is %v", g, b.Err())
			}
		})
	}
}

// useAfterError calls every kind of method on results that are 0: none may
// panic, and none may replace the error.
func useAfterError(b *graph.Builder, x graph.ID) {
	y := b.Add(x, x)
	y = b.Neg(b.Reshape(b.MeanKeep(b.Mean(b.Mul(y, y), 1), 0, 3), graph.D(7)))
	y = b.Concat(0, b.Slice(b.Pad(y, 0, 1, 1), 0, 0, 1, 1), b.BroadcastTo(b.Scale(y, 2), graph.D(4)))
	y = b.ConvTranspose2D(b.Conv2D(y, y, graph.NewConv(3, 1, 1)), y, graph.NewConv(3, 1, 1))
	y = b.MaxPool2D(b.Upsample2D(b.Cast(b.Pow(y, 0), graph.F64), graph.Nearest, 2), graph.SquareWindow(2, 2, 0))
	y = b.Select(y, b.StopGrad(y), b.Gather(y, b.Iota(b.Type(y), 3)))
	all := b.AllReduce(collective.Sum, "after", y, y)
	g := b.Grad(b.Sum(all[1]), x, y)
	b.Assign(g[0], g[1])
	b.Output("y", g[1])
	b.Output("y", b.Transpose(b.MatMul(y, y, true, false), 1, 0))
	b.Input("after", graph.T(graph.F32))
	b.Scope("later", func() { b.Sub(b.Max(y, y), 77) })
}

// TestErrorScope shows scopes: none at the top, and those of a gradient.
func TestErrorScope(t *testing.T) {
	var b graph.Builder
	b.Add(b.Zeros(graph.T(graph.F32, 2)), b.Zeros(graph.T(graph.F32, 3)))
	if err := b.Err(); err == nil || err.Error() != "add: shapes [2] and [3] do not fit together" {
		t.Errorf("without a scope: %v", err)
	}
	b = graph.Builder{}
	x := b.Input("x", graph.T(graph.F32, 2))
	b.Scope("energy", func() { b.Grad(b.Tanh(x), x) })
	b.Output("y", b.Grad(b.Tanh(x), x)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]bool{}
	for _, n := range g.Nodes() {
		scopes[n.Scope] = true
	}
	if !scopes["energy"] || !scopes["energy'"] || len(scopes) != 3 {
		t.Errorf("scopes %v, want none, energy and energy'", scopes)
	}
}

// TestTooManyAxes: shapes have at most MaxRank axes; more is a programmer's error.
func TestTooManyAxes(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "7 axes") {
			t.Errorf("recovered %v", r)
		}
	}()
	graph.D(1, 2, 3, 4, 5, 6, 7)
}

// An axis that is not there is a programmer's error, not a number.
func TestNoSuchAxis(t *testing.T) {
	d := graph.D(2, 3)
	for name, f := range map[string]func(){
		"At(2)": func() { d.At(2) }, "At(-1)": func() { d.At(-1) }, "With(2)": func() { d.With(2, 1) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasSuffix(r.(string), "of [2,3]") {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			f()
		}()
	}
}

// A step of any length takes the first element.
func TestSliceOfLongSteps(t *testing.T) {
	x := graph.T(graph.F32, 5)
	for _, step := range []int{5, 1 << 40, math.MaxInt} {
		out, err := graph.Slice{Start: graph.D(1), Limit: graph.D(5), Step: graph.D(step)}.Infer([]graph.Type{x})
		if want := graph.T(graph.F32, 1); err != nil || out[0] != want {
			t.Errorf("step %d: got %v, %v, want %v", step, out, err, want)
		}
	}
}

// In is the smallest image with so many positions of a window, whatever its paddings on
// each side: a pixel less has one less, or none, which no op takes. A mean is over all of a
// window.
func TestWindows(t *testing.T) {
	for _, w := range []graph.Window{
		graph.SquareWindow(3, 1, 1),
		{KH: 2, KW: 5, StrideH: 1, StrideW: 3, PadT: 1, PadL: 2, DilH: 1, DilW: 1},
		{KH: 3, KW: 2, StrideH: 2, StrideW: 1, PadB: 2, PadR: 1, DilH: 2, DilW: 3},
		{KH: 4, KW: 3, StrideH: 1, StrideW: 2, PadT: 2, PadB: 1, PadR: 2, DilH: 1, DilW: 2},
	} {
		for oh := 1; oh < 4; oh++ {
			for ow := 1; ow < 4; ow++ {
				h, wd := w.In(oh, ow)
				for _, less := range [][2]int{{0, 0}, {1, 0}, {0, 1}} {
					var b graph.Builder
					y := b.AvgPool2D(b.Input("x", graph.T(graph.F32, 2, 3, h-less[0], wd-less[1])), w)
					none := h == less[0] || wd == less[1]
					if want := graph.D(2, 3, oh-b2i(less[0] > 0), ow-b2i(less[1] > 0)); want.Len() == 0 || none {
						if b.Err() == nil {
							t.Errorf("%v: an image of %dx%d has positions %v, want none", w, h-less[0], wd-less[1], b.Shape(y))
						}
					} else if b.Err() != nil || b.Shape(y) != want {
						t.Errorf("%v: an image of %dx%d has positions %v (%v), want %v", w, h-less[0], wd-less[1], b.Shape(y), b.Err(), want)
					} else if a := b.Node(y).Op.(graph.Unary).A(); a != 1/float64(w.KH*w.KW) {
						t.Errorf("%v: a mean is %v of a sum", w, a)
					}
				}
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
