package plan

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// holdsExactly compares the outputs of a graph, run on the machine with x as every input, with
// the reference's.
func holdsExactly(t *testing.T, name string, x *exec.Tensor, build func(b *graph.Builder) []graph.ID) {
	t.Helper()
	var b graph.Builder
	for i, y := range build(&b) {
		b.Output(fmt.Sprint("y", i), y)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want, err := reference(g, map[string]*exec.Tensor{"x": x})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p := New(g, Options{Name: name})
	p.Allocate()
	m, err := newMachine(p, 1)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, e := range p.Inputs {
		copy(m.external(e), x.Bytes())
	}
	for i, run := range m.steps {
		if err := run(); err != nil {
			t.Fatalf("%s: step %d: %v", name, i, err)
		}
	}
	for i, got := range m.logical() {
		for k := range got.Type.Shape.Len() {
			if a, b := got.At(k), want[i].At(k); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Errorf("%s: output %d is %v at %d, want %v", name, i, a, k, b)
			}
		}
	}
}

// What is computed of numbers alone is what it is in each type: rounded after every op, or
// to whole numbers.
func TestNumbersAreOfTheirType(t *testing.T) {
	for _, dt := range []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8} {
		numbers := []float64{0, 1, 2.5, 9} // whose sums and products all types hold
		if dt.IsFloat() {
			numbers = append(numbers, 0.3, 0.1, -7, 1<<30+1)
		}
		holdsExactly(t, dt.String(), exec.NewTensor(graph.T(dt)), func(b *graph.Builder) (out []graph.ID) {
			of := func(v float64) graph.ID { return b.Full(graph.T(dt, 2), v) }
			for _, v := range numbers {
				for _, w := range numbers {
					x, y := of(v), of(w)
					sum := b.Add(x, y)
					out = append(out, sum, b.Sub(sum, x), b.Apply(graph.Binary{Fn: graph.Mul}, sum, x)[0], b.Equal(b.Sub(sum, y), x), b.Select(x, y, of(5)))
					if dt.IsFloat() {
						out = append(out, b.Square(b.Scale(sum, 0.75)), b.Shift(b.Div(x, y), 0.25), b.Select(b.Neg(x), y, of(5)), b.Max(x, b.Sub(x, sum)))
					}
				}
			}
			return out
		})
	}
}

// The slope of a rectifier is that at its operand, also where the result is positive though
// the operand is not.
func TestSlopeOfNegativeRectifier(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 64))
	for i := range 64 {
		x.SetAt(i, float64(i-32)/4)
	}
	for _, a := range []float64{-0.5, 0, 0.5} {
		holdsExactly(t, fmt.Sprint("slope ", a), x, func(b *graph.Builder) []graph.ID {
			x := b.Input("x", x.Type)
			y := b.LeakyRelu(x, a)
			slope := func(x graph.ID) graph.ID {
				return b.Apply(graph.Unary{Fn: graph.LeakyStep, Bits: math.Float64bits(a)}, x)[0]
			}
			others := []graph.ID{b.Relu(x), b.Step(x), b.Sign(x), b.Abs(x), b.Neg(x)} // beside the rectifiers of x
			return append(others, y, slope(x), slope(y), b.Grad(b.Sum(b.Square(y)), x)[0], b.Mul(slope(y), b.Sum(b.Mul(y, slope(y)))))
		})
	}
}

// So it is where the result is not kept, and computed again in the groups that read it.
func TestSlopeOfDerivedRectifier(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 16, 16))
	for i := range 256 {
		x.SetAt(i, float64(i*37%64-32)/4)
	}
	for _, slopes := range [][2]float64{{-0.5, -0.5}, {0, 0}, {0.5, 0.5}, {-0.5, 0.5}} { // of the rectifier, and of what is taken of its result
		of, a := slopes[0], slopes[1]
		holdsExactly(t, fmt.Sprint("slopes ", slopes), x, func(b *graph.Builder) []graph.ID {
			x := b.Input("x", x.Type)
			d := b.MatMul(x, x, false, false)
			y := b.LeakyRelu(d, of)
			z := b.MatMul(y, x, false, false)
			slope := b.Apply(graph.Unary{Fn: graph.LeakyStep, Bits: math.Float64bits(a)}, y)[0]
			return []graph.ID{b.SumKeep(b.Mul(z, b.Mul(slope, d)), 0), b.SumKeep(b.Mul(b.Square(z), slope), 0)}
		})
	}
}

// What is computed once because it is the same behind a StopGrad has all of its results: a pool,
// its maxima and their places.
func TestMergedPools(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 1, 2, 4, 4))
	for i := range x.Type.Shape.Len() {
		x.SetAt(i, float64(i*13%32))
	}
	holdsExactly(t, "pools", x, func(b *graph.Builder) (out []graph.ID) {
		in := b.Input("x", x.Type)
		for _, x := range []graph.ID{in, b.StopGrad(in)} {
			pool := b.Apply(graph.MaxPool2D{Window: graph.SquareWindow(2, 2, 0)}, x)
			out = append(out, pool[0], b.Cast(pool[1], graph.F64))
		}
		return out
	})
}
