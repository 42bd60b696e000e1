package plan

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

// What is computed of constants is what the reference computes of the same numbers when a
// program runs, in both types, at the ends and at the kinks of every function. Parameters are
// numbers that float32 has: here they are of the type, as in programs, and there of float64.
func TestFoldedIsComputed(t *testing.T) {
	x := []float64{0, math.Copysign(0, -1), 0.3, -0.3, 1, -1, 2.5, -2.5, 40, -40, 1e-30, -1e-30, 1e30, math.Inf(1), math.Inf(-1), math.NaN()}
	var y []float64 // each of x beside each
	for range x {
		y = append(y, x...)
	}
	var rows []float64
	for _, v := range x {
		for range x {
			rows = append(rows, v)
		}
	}
	check := func(op graph.Op, d graph.DType, in ...[]float64) {
		t.Helper()
		b, values := new(graph.Builder), ddptest.Values{}
		var ids []graph.ID
		for i, v := range in {
			name := string(rune('a' + i))
			values[name] = v
			ids = append(ids, b.Input(name, graph.T(d, len(v))))
		}
		b.Output("out", b.Apply(op, ids...)[0])
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, ddptest.NewVars(), nil, values)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range out["out"] {
			var at [3]float64
			for k := range in {
				at[k] = in[k][i]
			}
			got := fold(op, d, at)
			if !(got == want && math.Signbit(got) == math.Signbit(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%v of %v in %v: folded %v, computed %v", op, at[:len(in)], d, got, want)
			}
		}
	}
	for _, d := range []graph.DType{graph.F32, graph.F64} {
		for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
			for _, a := range []float64{0.25, -1.5, 3} {
				if op := (graph.Unary{Fn: fn, Bits: math.Float64bits(a)}); fn.HasParam() {
					check(op, d, x)
				}
			}
			if !fn.HasParam() {
				check(graph.Unary{Fn: fn}, d, x)
			}
		}
		for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
			check(graph.Binary{Fn: fn}, d, rows, y)
		}
		check(graph.Select{}, d, rows, y, rows)
	}
}
