package graph_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/graph"
)

// TestShortcuts: where the builder makes less than what is asked for, the numbers are those
// that were asked for. x is {2, −3, 0.5}, y is 4.
func TestShortcuts(t *testing.T) {
	typ := graph.T(graph.F64, 3)
	x3 := []float64{2, -3, 0.5}
	for _, c := range []struct {
		name string
		f    func(b *graph.Builder, x, y graph.ID) graph.ID
		want []float64
	}{
		{"−(−x)", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Neg(b.Neg(x)) }, x3},
		{"−(−(−x))", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Neg(b.Neg(b.Neg(x))) }, []float64{-2, 3, -0.5}},
		{"1·x", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Scale(x, 1) }, x3},
		{"−1·x", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Scale(x, -1) }, []float64{-2, 3, -0.5}},
		{"x + 0", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Shift(x, 0) }, x3},
		{"x⁰", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Pow(x, 0) }, []float64{1, 1, 1}},
		{"x¹", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Pow(x, 1) }, x3},
		{"x²", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Pow(x, 2) }, []float64{4, 9, 0.25}},
		{"0 + x", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Add(b.Zeros(typ), x) }, x3},
		{"x + zeros", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Add(x, b.Zeros(typ)) }, x3},
		{"y + zeros", func(b *graph.Builder, _, y graph.ID) graph.ID { return b.Add(y, b.Zeros(typ)) }, []float64{4, 4, 4}},
		{"0 + zeros of an array", func(b *graph.Builder, _, y graph.ID) graph.ID { return b.Add(b.Zeros(typ), y) }, []float64{4, 4, 4}},
		{"3·x", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Mul(b.Full(typ, 3), x) }, []float64{6, -9, 1.5}},
		{"threes·y", func(b *graph.Builder, _, y graph.ID) graph.ID { return b.Mul(b.Full(typ, 3), y) }, []float64{12, 12, 12}},
		{"y·threes", func(b *graph.Builder, _, y graph.ID) graph.ID { return b.Mul(y, b.Full(typ, 3)) }, []float64{12, 12, 12}},
		{"integers times a constant", func(b *graph.Builder, x, _ graph.ID) graph.ID {
			n := b.Iota(graph.T(graph.I32, 3), 0)
			return b.Cast(b.Mul(n, b.Full(b.Type(n), 5)), graph.F64)
		}, []float64{0, 5, 10}},
		{"no axes", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.MaxKeep(b.MeanKeep(b.SumKeep(x))) }, x3},
		{"an axis named twice", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Sum(x, 0, 0) }, []float64{-0.5}},
		{"the sum of a number", func(b *graph.Builder, _, y graph.ID) graph.ID { return b.Sum(y) }, []float64{4}},
		{"a mean", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Mean(b.Concat(0, x, x)) }, []float64{-1.0 / 6}},
		{"a mean of columns", func(b *graph.Builder, x, y graph.ID) graph.ID {
			rows := b.Concat(0, b.Reshape(x, graph.D(1, 3)), b.BroadcastTo(y, graph.D(1, 3)))
			return b.Mean(rows, 0)
		}, []float64{3, 0.5, 2.25}},
		{"means of none", func(b *graph.Builder, _, _ graph.ID) graph.ID {
			return b.Mean(b.Input("none", graph.T(graph.F64, 0, 3)), 1)
		}, nil},
		{"axes of extent 1 that are not summed over stay", func(b *graph.Builder, x, _ graph.ID) graph.ID {
			s := b.Sum(b.Reshape(x, graph.D(1, 3, 1)), 1)
			if b.Shape(s) != graph.D(1, 1) {
				t.Errorf("the sum is of shape %v", b.Shape(s))
			}
			return s
		}, []float64{-0.5}},
		{"reshaped twice", func(b *graph.Builder, x, _ graph.ID) graph.ID {
			return b.Reshape(b.Reshape(x, graph.D(3, 1)), graph.D(1, 3))
		}, x3},
		{"all of a slice", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Slice(x, 0, 0, 3, 1) }, x3},
		{"from the second on", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Slice(x, 0, 1, 3, 1) }, []float64{-3, 0.5}},
		{"every second", func(b *graph.Builder, x, _ graph.ID) graph.ID { return b.Slice(x, 0, 0, 3, 2) }, []float64{2, 0.5}},
		{"nothing next to x", func(b *graph.Builder, x, _ graph.ID) graph.ID {
			return b.Concat(0, b.Input("none", graph.T(graph.F64, 0)), x)
		}, x3},
		{"nothing and one", func(b *graph.Builder, _, y graph.ID) graph.ID {
			return b.Add(b.Input("none", graph.T(graph.F64, 0)), b.Reshape(y, graph.D(1)))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := evaluate(t, map[string][]float64{"x": x3, "y": {4}}, func(b *graph.Builder) []graph.ID {
				return []graph.ID{c.f(b, b.Input("x", typ), b.Input("y", scalar))}
			})
			if !slices.Equal(got[0], c.want) {
				t.Errorf("got %v, want %v", got[0], c.want)
			}
		})
	}
}

// A constant keeps the sign of its zero, and its bits.
func TestConstantBits(t *testing.T) {
	var b graph.Builder
	for _, v := range []float64{math.Copysign(0, -1), 0, 0.1, math.Inf(-1)} {
		if c := b.Node(b.Full(scalar, v)).Op.(graph.Const); c.Bits != math.Float64bits(v) {
			t.Errorf("the constant %v is %x, want %x", v, c.Bits, math.Float64bits(v))
		}
	}
	if got := fmt.Sprint(b.Err()); got != "<nil>" {
		t.Error(got)
	}
}
