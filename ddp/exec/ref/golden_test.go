package ref_test

import (
	"context"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// input is an argument with its elements.
type input struct {
	typ graph.Type
	v   []float64
}

func f64(shape graph.Shape, v ...float64) input {
	return input{graph.Type{DType: graph.F64, Shape: shape}, v}
}

func i32(v ...float64) input { return input{graph.T(graph.I32, len(v)), v} }

// goldens are results that were worked out by hand: the truth about the truth.
// Where PyTorch has the function, they are PyTorch's.
var goldens = []struct {
	name string
	op   graph.Op
	in   []input
	want []float64 // of the first output
}{
	{"a convolution does not turn its kernel", graph.Conv2D{Conv: graph.NewConv(2, 1, 0)},
		[]input{f64(graph.D(1, 1, 2, 2), 1, 2, 3, 4), f64(graph.D(1, 1, 2, 2), 1, 10, 100, 1000)}, []float64{4321}},
	{"padding above only", graph.Conv2D{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1}}},
		[]input{f64(graph.D(1, 1, 2, 2), 1, 2, 3, 4), f64(graph.D(1, 1, 2, 2), 1, 10, 100, 1000)}, []float64{2100, 4321}},
	{"padding on the right only", graph.Conv2D{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadR: 1}}},
		[]input{f64(graph.D(1, 1, 2, 2), 1, 2, 3, 4), f64(graph.D(1, 1, 2, 2), 1, 10, 100, 1000)}, []float64{4321, 402}},
	{"dilation", graph.Conv2D{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 1, DilH: 2, DilW: 2}}},
		[]input{f64(graph.D(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9), f64(graph.D(1, 1, 2, 2), 1, 10, 100, 1000)}, []float64{9731}},
	{"stride along the width", graph.Conv2D{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 3, DilH: 1, DilW: 1}}},
		[]input{f64(graph.D(1, 1, 1, 6), 1, 2, 3, 4, 5, 6), f64(graph.D(1, 1, 1, 2), 1, 10)}, []float64{21, 54}},
	{"channels and outputs", graph.Conv2D{Conv: graph.NewConv(1, 1, 0)},
		[]input{f64(graph.D(2, 2, 1, 1), 1, 2, 3, 4), f64(graph.D(3, 2, 1, 1), 1, 0, 0, 1, 1, 10)}, []float64{1, 2, 21, 3, 4, 43}},
	{"groups", graph.Conv2D{Conv: graph.Conv{Groups: 2, Window: graph.SquareWindow(1, 1, 0)}},
		[]input{f64(graph.D(1, 2, 1, 1), 5, 7), f64(graph.D(2, 1, 1, 1), 2, 3)}, []float64{10, 21}},
	{"transposed convolution", graph.Conv2DGradX{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 2, DilH: 1, DilW: 1}}, H: 1, W: 5},
		[]input{f64(graph.D(1, 1, 1, 3), 1, 10, 100), f64(graph.D(1, 1, 1, 2), 1, 2)}, []float64{1, 10, 102, 20, 200}},
	{"gradient of the weight", graph.Conv2DGradW{Conv: graph.Conv{Groups: 1, Window: graph.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}}},
		[]input{f64(graph.D(1, 1, 1, 3), 1, 2, 3), f64(graph.D(1, 1, 1, 2), 1, 10)}, []float64{21, 32}},
	{"matmul", graph.MatMul{}, []input{f64(graph.D(1, 2), 2, 3), f64(graph.D(2, 2), 1, 2, 10, 20)}, []float64{32, 64}},
	{"matmul of transposes", graph.MatMul{TransX: true, TransY: true}, []input{f64(graph.D(2, 1), 2, 3), f64(graph.D(2, 2), 1, 10, 2, 20)}, []float64{32, 64}},
	{"bilinear x2", graph.Upsample2D{Mode: graph.Bilinear, Scale: 2}, []input{f64(graph.D(1, 1, 1, 2), 1, 2)},
		[]float64{1, 1.25, 1.75, 2, 1, 1.25, 1.75, 2}},
	{"bilinear x4", graph.Upsample2D{Mode: graph.Bilinear, Scale: 4}, []input{f64(graph.D(1, 1, 1, 1), 7)},
		[]float64{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
	{"nearest x2", graph.Upsample2D{Mode: graph.Nearest, Scale: 2}, []input{f64(graph.D(1, 1, 1, 2), 1, 2)}, []float64{1, 1, 2, 2, 1, 1, 2, 2}},
	{"nearest, transposed", graph.Upsample2DT{Mode: graph.Nearest, Scale: 2}, []input{f64(graph.D(1, 1, 2, 2), 1, 2, 3, 4)}, []float64{10}},
	{"sum pool counts padding as 0", graph.SumPool2D{Window: graph.SquareWindow(2, 2, 1)}, []input{f64(graph.D(1, 1, 2, 2), 1, 2, 3, 4)}, []float64{1, 2, 3, 4}},
	{"a NaN wins", graph.MaxPool2D{Window: graph.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}}, []input{f64(graph.D(1, 1, 1, 6), 1, math.NaN(), 3, 2, math.Inf(-1), 1)}, []float64{math.NaN(), math.NaN(), 3, 2}},
	{"padding never wins", graph.MaxPool2D{Window: graph.SquareWindow(3, 1, 1)}, []input{f64(graph.D(1, 1, 1, 3), -5, -3, -4)}, []float64{-3, -3, -3}},
	{"sum of columns", graph.Reduce{Fn: graph.ReduceSum, Axes: 1}, []input{f64(graph.D(2, 2), 1, 2, 10, 20)}, []float64{11, 22}},
	{"maximum of rows", graph.Reduce{Fn: graph.ReduceMax, Axes: 2}, []input{f64(graph.D(2, 2), -1, -2, -20, -10)}, []float64{-1, -10}},
	{"transpose", graph.Transpose{Perm: graph.D(2, 0, 1)}, []input{f64(graph.D(1, 2, 3), 1, 2, 3, 4, 5, 6)}, []float64{1, 4, 2, 5, 3, 6}},
	{"slice", graph.Slice{Start: graph.D(0, 1), Limit: graph.D(2, 4), Step: graph.D(1, 2)}, []input{f64(graph.D(2, 4), 0, 1, 2, 3, 10, 11, 12, 13)}, []float64{1, 3, 11, 13}},
	{"pad with gaps", graph.Pad{Lo: graph.D(1), Hi: graph.D(2), Gap: graph.D(1)}, []input{f64(graph.D(2), 7, 8)}, []float64{0, 7, 0, 8, 0, 0}},
	{"concat of columns", graph.Concat{Axis: 1}, []input{f64(graph.D(2, 1), 1, 2), f64(graph.D(2, 2), 3, 4, 5, 6)}, []float64{1, 3, 4, 2, 5, 6}},
	{"broadcast of a column", graph.Broadcast{Shape: graph.D(2, 2)}, []input{f64(graph.D(2, 1), 1, 2)}, []float64{1, 1, 2, 2}},
	{"gather", graph.Gather{}, []input{f64(graph.D(3, 2), 0, 1, 10, 11, 20, 21), i32(2, 0, 2)}, []float64{20, 21, 0, 1, 20, 21}},
	{"scatter", graph.ScatterAdd{Rows: 3}, []input{f64(graph.D(3, 1), 1, 2, 4), i32(2, 0, 2)}, []float64{2, 0, 5}},
	{"ties go to even", graph.Cast{To: graph.I32}, []input{f64(graph.D(6), 0.5, 1.5, 2.5, -0.5, -1.5, 2.6)}, []float64{0, 2, 2, 0, -2, 3}},
	{"bf16", graph.Cast{To: graph.BF16}, []input{f64(graph.D(4), 1+0x1p-8, 1+0x3p-8, 0.1, -3)}, []float64{1, 1 + 0x1p-6, 0.10009765625, -3}},
	{"select", graph.Select{}, []input{f64(graph.D(3), 0, 1, -2), f64(graph.D(3), 1, 2, 3), f64(graph.D(3), 4, 5, 6)}, []float64{4, 2, 3}},
	{"leaky", graph.Unary{Fn: graph.LeakyRelu, Bits: math.Float64bits(0.5)}, []input{f64(graph.D(3), -2, 0, 2)}, []float64{-1, 0, 2}},
	{"elu", graph.Unary{Fn: graph.Elu, Bits: math.Float64bits(2)}, []input{f64(graph.D(2), -math.Ln2, 3)}, []float64{-1, 3}},
	{"softplus far out", graph.Unary{Fn: graph.Softplus}, []input{f64(graph.D(3), 0, 800, -800)}, []float64{math.Ln2, 800, 0}},
	{"sigmoid far out", graph.Unary{Fn: graph.Sigmoid}, []input{f64(graph.D(3), 0, 800, -800)}, []float64{0.5, 1, 0}},
}

func TestGoldens(t *testing.T) {
	for _, c := range goldens {
		t.Run(c.name, func(t *testing.T) {
			out := apply(t, c.op, c.in)
			if out[0].Type.Shape.Len() != len(c.want) {
				t.Fatalf("got %v, want %d elements", out[0].Type, len(c.want))
			}
			for i, w := range c.want {
				if got := out[0].At(i); !(math.Abs(got-w) <= 1e-15*math.Abs(w)) && !(math.IsNaN(got) && math.IsNaN(w)) {
					t.Errorf("element %d: got %v, want %v", i, got, w)
				}
			}
		})
	}
}

// apply runs one op on inputs and returns its outputs.
func apply(t *testing.T, op graph.Op, in []input) []*exec.Tensor {
	t.Helper()
	names := []string{"a", "b", "c"}
	var n int
	g := build(t, func(b *graph.Builder) {
		var x []graph.ID
		for i, a := range in {
			x = append(x, b.Input(names[i], a.typ))
		}
		for i, y := range b.Apply(op, x...) {
			b.Output(names[i], y)
			n = i + 1
		}
	})
	p, err := ref.New().Compile(g, exec.Options{Name: "golden"})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range in {
		for k, v := range a.v {
			p.Input(names[i]).SetAt(k, v)
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	var out []*exec.Tensor
	for _, name := range names[:n] {
		out = append(out, p.Output(name))
	}
	return out
}

// TestMaxPoolPlaces: the second output is the place of the first maximum, or of the first
// NaN.
func TestMaxPoolPlaces(t *testing.T) {
	out := apply(t, graph.MaxPool2D{Window: graph.SquareWindow(2, 1, 0)}, []input{f64(graph.D(1, 1, 2, 3), 1, 5, 5, 5, 0, 2)})
	if got := out[1].I32(); len(got) != 2 || got[0] != 1 || got[1] != 1 {
		t.Errorf("places %v, want [1 1]", got)
	}
	nan := math.NaN()
	out = apply(t, graph.MaxPool2D{Window: graph.SquareWindow(2, 1, 0)}, []input{f64(graph.D(1, 1, 2, 3), 7, nan, 5, nan, 9, nan)})
	if got := out[1].I32(); len(got) != 2 || got[0] != 1 || got[1] != 1 {
		t.Errorf("places of NaN %v, want [1 1]", got)
	}
}

// TestDraws: row r is the stream of sample key[2]+r.
func TestDraws(t *testing.T) {
	key := input{graph.KeyType, []float64{77, 5, 100}}
	for _, dist := range []graph.Dist{graph.Normal, graph.Uniform, graph.Rademacher} {
		out := apply(t, graph.Draw{Dist: dist, Purpose: philox.Latent, Sub: 3, Type: graph.T(graph.F64, 2, 5)}, []input{key})
		for r := range 2 {
			name := philox.Name{Seed: 77, Step: 5, Sample: uint32(100 + r), Purpose: philox.Latent, Sub: 3}
			want := make([]float64, 5)
			switch dist {
			case graph.Normal:
				name.Normal(want)
			case graph.Uniform:
				name.Uniform(want)
			default:
				for i := range want {
					want[i] = []float64{-1, 1}[name.Uint32(i)&1]
				}
			}
			for i, w := range want {
				if got := out[0].At(r*5 + i); got != w {
					t.Errorf("%s, row %d, element %d: got %v, want %v", dist, r, i, got, w)
				}
			}
		}
	}
}

// TestOneRounding: a float32 sum is taken in float64 and rounded once.
func TestOneRounding(t *testing.T) {
	out := apply(t, graph.Reduce{Fn: graph.ReduceSum, Axes: 1}, []input{{graph.T(graph.F32, 4), []float64{1 << 24, 1, 1, 1}}})
	if got := out[0].At(0); got != 1<<24+4 { // 2²⁴+3 rounds to even
		t.Errorf("got %v, want %v", got, 1<<24+4)
	}
}

// TestSumsAreCompensated: a long sum has the digits of the exact one, of numbers that are
// equal, of which each rounding is the same, and of such that cancel; and an infinity stays one.
func TestSumsAreCompensated(t *testing.T) {
	const n = 1 << 14
	equal, cancel, infinite := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		equal[i], cancel[i], infinite[i] = 0.7616, 1, 1
	}
	cancel[0], cancel[n-1], infinite[n/2] = 1e17, -1e17, math.Inf(1)
	for name, c := range map[string]struct {
		x    []float64
		want float64
	}{"equal": {equal, n * 0.7616}, "cancel": {cancel, n - 2}, "infinite": {infinite, math.Inf(1)}} {
		out := apply(t, graph.Reduce{Fn: graph.ReduceSum, Axes: 1}, []input{{graph.T(graph.F64, n), c.x}})
		if got := out[0].At(0); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
