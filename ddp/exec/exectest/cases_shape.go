package exectest

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// moves are the ops that move elements, each with the shapes of its inputs.
var moves = []struct {
	op graph.Op
	in []graph.Shape
}{
	{graph.Reshape{Shape: graph.D(4, 6)}, shapes(graph.D(2, 3, 4))},
	{graph.Reshape{Shape: graph.D()}, shapes(graph.D(1, 1))},
	{graph.Reshape{Shape: graph.D(1, 2, 3, 1, 5, 1)}, shapes(graph.D(30))},
	{graph.StopGrad{}, shapes(graph.D(3, 5))},
	{graph.Broadcast{Shape: graph.D(3, 5)}, shapes(graph.D(1, 5))},
	{graph.Broadcast{Shape: graph.D(3, 5)}, shapes(graph.D(3, 1))},
	{graph.Broadcast{Shape: graph.D(2, 3, 4, 5)}, shapes(graph.D(1, 3, 1, 1))},
	{graph.Broadcast{Shape: graph.D(2, 3, 2, 2, 3)}, shapes(graph.D(2, 1, 2, 1, 3))},
	{graph.Broadcast{Shape: graph.D(67)}, shapes(graph.D(1))},
	{graph.Transpose{Perm: graph.D()}, shapes(graph.D())},
	{graph.Transpose{Perm: graph.D(1, 0)}, shapes(graph.D(17, 5))},
	{graph.Transpose{Perm: graph.D(0, 1, 2)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(0, 2, 1)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(1, 0, 2)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(1, 2, 0)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(2, 0, 1)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(2, 1, 0)}, shapes(graph.D(2, 3, 4))},
	{graph.Transpose{Perm: graph.D(0, 2, 3, 1)}, shapes(graph.D(2, 3, 4, 5))},
	{graph.Transpose{Perm: graph.D(0, 2, 1)}, shapes(graph.D(2, 33, 40))},       // both of its ends are long
	{graph.Transpose{Perm: graph.D(0, 2, 3, 1)}, shapes(graph.D(2, 3, 17, 18))}, // channels of pictures last,
	{graph.Transpose{Perm: graph.D(0, 3, 1, 2)}, shapes(graph.D(2, 17, 18, 3))}, // and first again
	{graph.Transpose{Perm: graph.D(1, 0, 2, 3)}, shapes(graph.D(2, 3, 4, 5))},
	{graph.Transpose{Perm: graph.D(3, 1, 0, 2)}, shapes(graph.D(2, 3, 4, 5))},
	{graph.Transpose{Perm: graph.D(4, 2, 0, 3, 1)}, shapes(graph.D(2, 3, 2, 3, 2))},
	{graph.Transpose{Perm: graph.D(5, 0, 3, 1, 4, 2)}, shapes(graph.D(1, 2, 3, 1, 2, 3))},
	{graph.Slice{Start: graph.D(2), Limit: graph.D(9), Step: graph.D(1)}, shapes(graph.D(11))},
	{graph.Slice{Start: graph.D(1), Limit: graph.D(11), Step: graph.D(3)}, shapes(graph.D(11))},
	{graph.Slice{Start: graph.D(0, 1, 2), Limit: graph.D(4, 5, 3), Step: graph.D(3, 2, 1)}, shapes(graph.D(4, 5, 3))},
	{graph.Slice{Start: graph.D(0, 1, 0, 1), Limit: graph.D(2, 3, 5, 6), Step: graph.D(1, 1, 2, 2)}, shapes(graph.D(2, 3, 5, 6))},
	{graph.Slice{Start: graph.D(1, 0, 1, 0, 0), Limit: graph.D(2, 2, 3, 2, 3), Step: graph.D(1, 1, 1, 1, 2)}, shapes(graph.D(2, 2, 3, 2, 3))},
	{graph.Pad{Lo: graph.D(2), Hi: graph.D(0), Gap: graph.D(0)}, shapes(graph.D(5))},
	{graph.Pad{Lo: graph.D(1), Hi: graph.D(2), Gap: graph.D(3)}, shapes(graph.D(5))},
	{graph.Pad{Lo: graph.D(0, 1, 2), Hi: graph.D(3, 0, 1), Gap: graph.D(0, 2, 1)}, shapes(graph.D(2, 3, 4))},
	{graph.Pad{Lo: graph.D(0, 0, 1, 2), Hi: graph.D(0, 0, 2, 1), Gap: graph.D(0, 0, 0, 1)}, shapes(graph.D(2, 3, 4, 5))},
	{graph.Pad{Lo: graph.D(1, 0, 0, 0, 1), Hi: graph.D(0, 1, 0, 0, 0), Gap: graph.D(0, 0, 1, 0, 0)}, shapes(graph.D(2, 2, 2, 2, 2))},
	{graph.Concat{Axis: 0}, shapes(graph.D(3), graph.D(1), graph.D(5))},
	{graph.Concat{Axis: 0}, shapes(graph.D(2, 3), graph.D(4, 3))},
	{graph.Concat{Axis: 1}, shapes(graph.D(2, 3), graph.D(2, 2), graph.D(2, 1), graph.D(2, 4))},
	{graph.Concat{Axis: 1}, shapes(graph.D(2, 3, 4, 5), graph.D(2, 1, 4, 5))},
	{graph.Concat{Axis: 3}, shapes(graph.D(2, 1, 3, 5), graph.D(2, 1, 3, 2))},
	{graph.Concat{Axis: 2}, shapes(graph.D(1, 2, 2, 1, 2), graph.D(1, 2, 3, 1, 2))},
}

func shapes(s ...graph.Shape) []graph.Shape { return s }

func shapeCases() []Case {
	var all []Case
	for _, m := range moves {
		c := Case{Name: fmt.Sprintf("%s %v", m.op, m.in), Build: apply(m.op), Tol: Exact}
		for _, s := range m.in {
			c.Args = append(c.Args, Arg{Shape: s})
		}
		all = append(all, c)
	}
	return append(all,
		Case{Name: "concat of x with itself", Args: args(float(2, 3)), Tol: Exact,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Concat(1, x[0], b.Neg(x[0]), x[0]) })},
		Case{Name: "concat with an empty part", Args: args(float(2, 3), float(2, 0)), Tol: Exact,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Concat(1, x[0], x[1]) })},
		Case{Name: "concat of empty values", Args: args(float(0, 3, 100), float(0, 2, 100)), Tol: Exact,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Concat(1, x[0], x[1]) })},
		Case{Name: "slices and pad by builder", Args: args(float(3, 8)), Tol: Exact,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID {
				return b.Pad(b.Slice(b.Slice(x[0], 1, 1, 8, 2), 0, 1, 3, 1), 1, 2, 1)
			})},
		Case{Name: "gradients of what is cut", Args: args(float(3, 8), float(5, 2, 3)), Tol: Whole,
			Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
				gates := b.Mul(b.Sin(b.Slice(x[0], 1, 0, 3, 1)), b.Slice(x[0], 1, 3, 6, 1)) // and 6:8 is not read
				rows := b.Sum(b.Mul(b.Slice(x[1], 0, 0, 2, 1), b.Exp(b.Slice(x[1], 0, 3, 5, 1))))
				return b.Grad(b.Add(b.Sum(b.Square(gates)), rows), x...)
			}},
		Case{Name: "an empty value", Args: args(float(0, 3)), Tol: Exact,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.SumKeep(b.Neg(x[0]), 0) })},
	)
}

// integerCases move, combine and reduce integers.
func integerCases() []Case {
	var all []Case
	for _, dt := range []graph.DType{graph.I32, graph.I64, graph.U8} {
		for _, m := range moves {
			c := Case{Name: fmt.Sprintf("%s %v %s", m.op, m.in, dt), Build: apply(m.op), Tol: Exact}
			for _, s := range m.in {
				c.Args = append(c.Args, intOf(dt, Below(200), s.Slice()...))
			}
			all = append(all, c)
		}
		for _, p := range pairTable {
			if p.fn != graph.Div {
				all = append(all, Case{Name: fmt.Sprintf("%s %s", p.fn, dt), Tol: Exact, Build: p.build(),
					Args: args(intOf(dt, Below(50), 3, 5), intOf(dt, Below(50), 3, 1))})
			}
		}
		x := intOf(dt, Below(200), 3, 5)
		all = append(all,
			Case{Name: "sum wraps " + dt.String(), Args: args(x), Build: apply(graph.Reduce{Fn: graph.ReduceSum, Axes: 2}), Tol: Exact},
			Case{Name: "max " + dt.String(), Args: args(x), Build: apply(graph.Reduce{Fn: graph.ReduceMax, Axes: 3}), Tol: Exact},
			Case{Name: "select " + dt.String(), Args: args(intOf(dt, Below(2), 3, 5), x, x), Build: apply(graph.Select{}), Tol: Exact},
			Case{Name: "sums that follow from others " + dt.String(), Args: args(intOf(dt, Below(200), 64, 64), intOf(dt, Below(200), 64, 64), intOf(dt, Below(200), 1, 4096)), Tol: Exact,
				Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
					return []graph.ID{b.SumKeep(x[0], 0), b.SumKeep(x[1], 0), b.SumKeep(b.Sub(x[0], x[1]), 0), b.SumKeep(b.BroadcastTo(x[2], graph.D(3, 4096)), 0)}
				}},
		)
	}
	for _, dt := range []graph.DType{graph.I32, graph.I64} {
		all = append(all, Case{Name: "max of negative numbers " + dt.String(), Args: args(intOf(dt, List(-7, -3, -200, -5), 3, 5)), Tol: Exact,
			Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
				return []graph.ID{b.MaxKeep(x[0], 0), b.MaxKeep(x[0], 1)}
			}})
	}
	large := List(1<<40, 1<<52, -(1 << 45), 3)
	return append(all, Case{Name: "i64 beyond f32", Args: args(intOf(graph.I64, large, 8)), Tol: Exact,
		Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Add(x[0], b.Iota(b.Type(x[0]), 0)) })})
}

// castCases convert between all types, at numbers that all can hold or that
// lie between integers.
func castCases() []Case {
	var all []Case
	types := []graph.DType{0, graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8}
	for _, from := range types {
		for _, to := range types[1:] {
			a := Arg{Shape: graph.D(9), DType: from, Fill: List(0, 0.5, 1, 1.5, 2.5, 3.25, 100.7, 127, 200), Fixed: from != 0}
			c := Case{Name: fmt.Sprintf("cast to %s", to), Args: args(a), Build: apply(graph.Cast{To: to}), Tol: Exact}
			if from != 0 {
				c.Name = fmt.Sprintf("cast %s to %s", from, to)
			}
			c.NoDiff = to != graph.F64 // the rest round
			all = append(all, c)
		}
	}
	return all
}

// leafCases make values of nothing, or of a key.
func leafCases() []Case {
	all := []Case{
		{Name: "iota", Tol: Exact, Build: func(b *graph.Builder, _ []graph.ID) []graph.ID {
			return []graph.ID{b.Iota(graph.T(graph.F32, 3, 5), 0), b.Iota(graph.T(graph.F32, 3, 5), 1), b.Iota(graph.T(graph.I32, 2, 3, 4), 1), b.Iota(graph.T(graph.I64, 7), 0)}
		}},
		{Name: "const of bf16 is rounded", Tol: Exact, NoDiff: true, Build: func(b *graph.Builder, _ []graph.ID) []graph.ID {
			c := b.Full(graph.T(graph.BF16, 17), 0.3)
			return []graph.ID{b.Equal(c, b.BroadcastTo(b.MaxKeep(c, 0), graph.D(17))), b.Sub(b.Iota(b.Type(c), 0), c)}
		}},
		{Name: "const", Tol: Exact, Build: func(b *graph.Builder, _ []graph.ID) []graph.ID {
			return []graph.ID{b.Full(graph.T(graph.F32), 0.1), b.Full(graph.T(graph.F32, 3, 5), -2.5), b.Full(graph.T(graph.I32, 4), 7), b.Full(graph.T(graph.I64, 2), 2.5), b.Full(graph.T(graph.U8, 3), 255)}
		}},
	}
	key := intOf(graph.I64, List(-987654321987654321, 3_000_000_041, 1<<32-2), 3) // 32 bits of the step, and of the sample, which goes on at 0
	for _, d := range []graph.Dist{graph.Normal, graph.Uniform, graph.Rademacher} {
		for _, s := range []graph.Shape{graph.D(5), graph.D(3, 7), graph.D(2, 3, 5, 1), graph.D(1, 130), graph.D(61, 3)} {
			c := Case{Name: fmt.Sprintf("draw %s %v", d, s), Args: args(key), Tol: Exact,
				Build: one(func(b *graph.Builder, x []graph.ID) graph.ID {
					return b.Draw(x[0], d, 9, 5, graph.Type{DType: graph.F32, Shape: s})
				})}
			if d == graph.Normal {
				c.Tol = Drawn
			}
			all = append(all, c)
		}
	}
	return all
}
