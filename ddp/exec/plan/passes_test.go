package plan

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// planOf is the dump of the plan of a graph made by build.
func planOf(t *testing.T, build func(b *graph.Builder)) string {
	t.Helper()
	var b graph.Builder
	build(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return string(dump(t, compile(t, g, 1)))
}

func mustCount(t *testing.T, text string, want map[string]int) {
	t.Helper()
	for s, n := range want {
		if got := strings.Count(text, s); got != n {
			t.Errorf("%q occurs %d times, want %d, in\n%s", s, got, n, text)
		}
	}
}

// nearly is 1, but for as much as 1/(n − 1) is off 1/n for a thousand million n.
const nearly = 1 + 1e-9

// variance is the mean of (x − m)².
func variance(b *graph.Builder, x, m graph.ID) graph.ID {
	return b.MeanKeep(b.Square(b.Sub(x, m)), 0)
}

func TestMoments(t *testing.T) {
	text := planOf(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 4096, 16))
		m := b.MeanKeep(x, 0)
		b.Output("mean", m)
		b.Output("variance", variance(b, x, m))
	})
	mustCount(t, text, map[string]int{"fused f32[4096,16]": 1, "centred_squares": 1, "reduce_sum": 1, "sub": 0})

	other := planOf(t, func(b *graph.Builder) { // around something else, and in float64: as written
		x := b.Input("x", graph.T(graph.F32, 4096, 16))
		b.Output("around", variance(b, x, b.Scale(b.MeanKeep(x, 0), 2)))
		y := b.Input("y", graph.T(graph.F64, 4096, 16))
		b.Output("wide", variance(b, y, b.MeanKeep(y, 0)))
		b.Output("nearly", variance(b, x, b.Scale(b.SumKeep(x, 0), nearly/4096)))
	})
	mustCount(t, other, map[string]int{"centred_squares": 0, "reduce_sum": 5})

	// around a mean over other axes of as many elements, one that lies along another axis, of
	// another array, or of x as often as it is repeated
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 64, 64))
		b.Output("across", variance(b, x, b.MeanKeep(x, 1)))
	}), map[string]int{"centred_squares": 0, "reduce_sum": 2})
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 64, 64))
		m := b.Scale(b.Reshape(b.SumKeep(x, 0), graph.D(64, 1)), 1./64)
		b.Output("turned", variance(b, x, m))
	}), map[string]int{"centred_squares": 0, "reduce_sum": 2})
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x, y := b.Input("x", graph.T(graph.F32, 64, 64)), b.Input("y", graph.T(graph.F32, 64, 64))
		b.Output("of another", variance(b, x, b.MeanKeep(y, 0)))
	}), map[string]int{"centred_squares": 0, "reduce_sum": 2})
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 64, 1))
		m := b.Scale(b.SumKeep(b.BroadcastTo(x, graph.D(64, 64)), 0, 1), 1./64)
		b.Output("repeated", b.SumKeep(b.Square(b.Sub(x, m)), 0, 1))
	}), map[string]int{"centred_squares": 0, "reduce_sum": 2})
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x := b.BroadcastTo(b.Input("x", graph.T(graph.F32, 64, 1)), graph.D(64, 64))
		m := b.Scale(b.SumKeep(x, 0, 1), 1./64)
		b.Output("repeated, both", b.SumKeep(b.Square(b.Sub(x, m)), 0, 1))
	}), map[string]int{"centred_squares": 0, "reduce_sum": 2})
}

// The sum of a·y + (x − m), m the mean of x, needs no pass where the sum of y is made
// anyway; that of a·y − x is summed as it is, for little may be left of it, and so it is
// where m is nearly the mean.
func TestLinear(t *testing.T) {
	build := func(known, centred bool, of float64) func(b *graph.Builder) {
		return func(b *graph.Builder) {
			x, y, a := b.Input("x", graph.T(graph.F32, 4096, 16)), b.Input("y", graph.T(graph.F32, 4096, 16)), b.Input("a", graph.T(graph.F32, 1, 16))
			m := b.Scale(b.SumKeep(x, 0), of/4096)
			b.Output("m", m)
			if known {
				b.Output("y", b.SumKeep(y, 0))
			}
			z := b.Sub(b.Mul(y, a), x)
			if centred {
				z = b.Add(b.Mul(y, a), b.Sub(x, m))
			}
			b.Output("z", b.Add(z, b.SumKeep(z, 0)))
		}
	}
	mustCount(t, planOf(t, build(true, true, 1)), map[string]int{"reduce_sum": 2, "= mul": 2, "fused f32[4096,16]": 3})
	mustCount(t, planOf(t, build(false, true, 1)), map[string]int{"reduce_sum": 2, "= mul": 1, "fused f32[4096,16]": 3})
	mustCount(t, planOf(t, build(true, false, 1)), map[string]int{"reduce_sum": 3, "= mul": 1, "fused f32[4096,16]": 2})
	mustCount(t, planOf(t, build(true, true, nearly)), map[string]int{"reduce_sum": 3, "= mul": 1})
}

// It needs none, too, where the sum of y is asked for later.
func TestLinearOfLater(t *testing.T) {
	mustCount(t, planOf(t, func(b *graph.Builder) {
		x, y, a := b.Input("x", graph.T(graph.F32, 4096, 16)), b.Exp(b.Input("y", graph.T(graph.F32, 4096, 16))), b.Input("a", graph.T(graph.F32, 1, 16))
		z := b.Add(b.Mul(y, a), b.Sub(x, b.MeanKeep(x, 0)))
		b.Output("z", b.Add(z, b.SumKeep(z, 0)))
		b.Output("y", b.SumKeep(y, 0))
	}), map[string]int{"reduce_sum": 2})
}

// A sum that is nought makes none of others that it is added to: (x − m + y) − z is summed as
// it is, for little may be left of y − z. So is what is summed in bfloat16, of whose sums few
// digits are kept.
func TestLinearOfLarge(t *testing.T) {
	build := func(dt graph.DType, minus bool) func(b *graph.Builder) {
		return func(b *graph.Builder) {
			in := func(name string) graph.ID { return b.Input(name, graph.T(dt, 4096, 16)) }
			x, y, z := in("x"), in("y"), in("z")
			b.Output("sum y", b.SumKeep(y, 0))
			b.Output("sum z", b.SumKeep(z, 0))
			d := b.Add(b.Sub(x, b.MeanKeep(x, 0)), y)
			if minus {
				d = b.Sub(d, z)
			}
			b.Output("d", b.SumKeep(d, 0))
		}
	}
	mustCount(t, planOf(t, build(graph.F32, false)), map[string]int{"reduce_sum": 3})
	mustCount(t, planOf(t, build(graph.F32, true)), map[string]int{"reduce_sum": 4})
	mustCount(t, planOf(t, build(graph.BF16, false)), map[string]int{"reduce_sum": 4})
	mustCount(t, planOf(t, func(b *graph.Builder) { // nor is x less the mean of something else nought
		x, y := b.Input("x", graph.T(graph.F32, 4096, 16)), b.Input("y", graph.T(graph.F32, 4096, 16))
		b.Output("sum x", b.SumKeep(x, 0))
		b.Output("d", b.SumKeep(b.Sub(x, b.MeanKeep(y, 0)), 0))
	}), map[string]int{"reduce_sum": 3})
	mustCount(t, planOf(t, func(b *graph.Builder) { // nor what follows from a large one
		y, z := b.Input("y", graph.T(graph.F32, 4096, 16)), b.Input("z", graph.T(graph.F32, 4096, 16))
		b.Output("sum y", b.SumKeep(y, 0))
		b.Output("sum z", b.SumKeep(z, 0))
		v := b.Scale(y, 3)
		b.Output("sum v", b.SumKeep(v, 0))
		b.Output("d", b.SumKeep(b.Sub(v, z), 0))
	}), map[string]int{"reduce_sum": 3})
}

// A sum that follows from one that a pass before could make, beside another of the same
// array, needs no pass: a batch norm's gradient with a shift that is constant. Where
// nothing is summed before, it does.
func TestLinearBeside(t *testing.T) {
	build := func(before bool) func(b *graph.Builder) {
		return func(b *graph.Builder) {
			x, y, a := b.Input("x", graph.T(graph.F32, 4096, 16)), b.Input("y", graph.T(graph.F32, 4096, 16)), b.Input("a", graph.T(graph.F32, 1, 16))
			c := b.Sub(x, b.MeanKeep(x, 0))
			g, s := b.Mul(y, b.Step(c)), a
			if before {
				s = b.SumKeep(b.Mul(g, c), 0)
			}
			z := b.Add(b.Mul(g, a), b.Mul(c, s))
			b.Output("z", b.Sub(z, b.MeanKeep(z, 0)))
		}
	}
	mustCount(t, planOf(t, build(true)), map[string]int{"reduce_sum": 3, "fused f32[4096,16]": 3})
	mustCount(t, planOf(t, build(false)), map[string]int{"reduce_sum": 2, "fused f32[4096,16]": 3})
	if err := holds(exectest.Case{
		Args: []exectest.Arg{{Shape: graph.D(4096, 16), Fill: exectest.Between(-1, 1)}, {Shape: graph.D(4096, 16), Fill: exectest.Between(-1, 1)}, {Shape: graph.D(1, 16), Fill: exectest.Between(-1, 1)}},
		Build: func(b *graph.Builder, in []graph.ID) []graph.ID {
			c := b.Sub(in[0], b.MeanKeep(in[0], 0))
			g := b.Mul(in[1], b.Step(c))
			z := b.Add(b.Mul(g, in[2]), b.Mul(c, b.SumKeep(b.Mul(g, c), 0)))
			return []graph.ID{b.Sub(z, b.MeanKeep(z, 0))}
		},
	}, Options{World: 1}); err != nil {
		t.Error(err)
	}
}

// A sum of an array that is repeated is another than that of the array itself, which the
// pass that makes it could make.
func TestLinearOfRepeated(t *testing.T) {
	if err := holds(exectest.Case{
		Args: []exectest.Arg{{Shape: graph.D(4096, 1), Fill: exectest.Between(-1, 1)}, {Shape: graph.D(4096, 1), Fill: exectest.Between(-1, 1)}},
		Build: func(b *graph.Builder, in []graph.ID) []graph.ID {
			g := b.Mul(in[1], b.Step(in[0]))
			return []graph.ID{b.SumKeep(b.Mul(g, in[0]), 0), b.SumKeep(b.BroadcastTo(g, graph.D(4096, 16)), 0)}
		},
	}, Options{World: 1}); err != nil {
		t.Error(err)
	}
}

// A sum of multiples of x follows from that of x, one of parts of x does not: it may be
// finite where the other is not.
func TestLinearParts(t *testing.T) {
	for a, reductions := range map[float64]int{-3: 1, -0.5: 2, 0: 2, 0.5: 2, 2: 1} {
		text := planOf(t, func(b *graph.Builder) {
			x := b.Input("x", graph.T(graph.F32, 4096, 16))
			b.Output("x", b.SumKeep(x, 0))
			b.Output("ax", b.SumKeep(b.Scale(x, a), 0))
		})
		mustCount(t, text, map[string]int{"reduce_sum": reductions})
	}
}

// Nothing follows from the sum of x where a function of it is summed that is not linear, or a
// product with what is not the same along the axes that are summed over.
func TestLinearOfOthers(t *testing.T) {
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		op := graph.Unary{Fn: fn}
		if fn.HasParam() {
			op.Bits = math.Float64bits(3)
		}
		reductions := 2
		if fn == graph.Neg || fn == graph.Scale {
			reductions = 1
		}
		mustCount(t, planOf(t, func(b *graph.Builder) {
			x := b.Input("x", graph.T(graph.F32, 4096, 16))
			b.Output("x", b.SumKeep(x, 0))
			b.Output(op.String(), b.SumKeep(b.Apply(op, x)[0], 0))
		}), map[string]int{"reduce_sum": reductions})
	}
	mustCount(t, planOf(t, func(b *graph.Builder) { // of as many numbers as there are sums, but along the other axis
		x, a := b.Input("x", graph.T(graph.F32, 64, 64)), b.Input("a", graph.T(graph.F32, 64, 1))
		b.Output("x", b.SumKeep(x, 0))
		b.Output("ax", b.SumKeep(b.Mul(x, a), 0))
	}), map[string]int{"reduce_sum": 2})
}

// Of x + y in bfloat16, where y is nearly −x, the sum is that of what is left, 640/32: those
// of x and of y alone are 1600 and −1580, of which a bfloat16 keeps too little.
func TestSplitKeepsDigits(t *testing.T) {
	one := exec.NewTensor(graph.T(graph.BF16, 640, 4))
	for i := range one.Type.Shape.Len() {
		one.SetAt(i, 1+float64(i%2))
	}
	holdsExactly(t, "split", one, func(b *graph.Builder) []graph.ID {
		in := b.Input("x", one.Type)
		x := b.Square(in)
		y := b.Sub(b.Scale(b.MaxKeep(in, 0, 1), 1./64), x) // a pass later
		return []graph.ID{b.SumKeep(b.Add(x, y), 0)}
	})
}

// A sum of x + y that is repeated, or is of a view of it, is not that of x and y themselves: where
// each number goes into it several times, or others together, theirs are other sums. Nor is it
// where y is repeated.
func TestSplitOfViews(t *testing.T) {
	c := exectest.Case{Args: []exectest.Arg{{Shape: graph.D(6, 1), Fill: exectest.Between(-1, 1)}, {Shape: graph.D(3, 4), Fill: exectest.Between(-1, 1)}},
		Build: func(b *graph.Builder, in []graph.ID) []graph.ID {
			later := func(x graph.ID) graph.ID { return b.Tanh(b.Mul(x, b.SumKeep(x, 0, 1))) } // a pass later
			x := b.Exp(in[0])
			repeated := b.BroadcastTo(b.Add(x, later(x)), graph.D(6, 5))
			y := b.Exp(in[1])
			z := b.Reshape(b.Add(y, later(y)), graph.D(6, 2))
			row := b.SumKeep(y, 0)
			return []graph.ID{b.SumKeep(repeated, 1), b.SumKeep(b.Add(z, b.Exp(b.Reshape(in[1], graph.D(6, 2)))), 1), b.SumKeep(b.Add(y, row), 0)}
		}}
	if err := holds(c, Options{World: 1}); err != nil {
		t.Error(err)
	}
}

// What every reader can compute from a product in memory is not kept, and what
// follows from arrays at hand is not read.
func TestDerive(t *testing.T) {
	text := planOf(t, func(b *graph.Builder) {
		x, w := b.Input("x", graph.T(graph.F32, 512, 16)), b.Input("w", graph.T(graph.F32, 16, 16))
		p := b.MatMul(x, w, false, false)
		d := b.Sub(p, b.MeanKeep(p, 0))                                      // kept only if not derived
		y := b.Relu(d)                                                       // in memory: operand of a product
		z := b.MatMul(y, w, false, false)                                    // something later
		b.Output("s", b.SumKeep(b.Mul(z, b.Mul(b.Step(y), d)), 0))           // needs z and p only
		b.Output("t", b.SumKeep(b.Mul(b.Square(z), b.Square(b.Step(d))), 0)) // and so does this
	})
	mustCount(t, text, map[string]int{"= relu": 1, "t0 = sub": 2, "= step": 1, "f32[512,16]) = t": 1})
}

// Two groups do not wait for each other: what each could make of its own array beside its first
// reader is read by the other, too, in other extents.
func TestGroupsDoNotCross(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 8, 4))
	for i := range x.Type.Shape.Len() {
		x.SetAt(i, float64(i))
	}
	holdsExactly(t, "crossed", x, func(b *graph.Builder) []graph.ID {
		wide, tall := graph.D(4, 8), graph.D(8, 4)
		x := b.Input("x", x.Type)
		p, q := b.Shift(x, 1), b.Square(b.Reshape(x, wide))
		return []graph.ID{b.Sub(p, b.Reshape(q, tall)), b.Sub(q, b.Reshape(p, wide))}
	})
}
