package exectest

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

func reduceCases() []Case {
	var all []Case
	full := []int{2, 3, 4, 3, 2}
	for rank := range len(full) + 1 {
		for axes := range 1 << rank {
			all = append(all, reductions(uint8(axes), full[:rank]...)...)
		}
	}
	all = append(all, reductions(0b1101, 3, 5, 6, 7)...) // per channel of images
	all = append(all, reductions(0b110, 7, 33, 9)...)
	all = append(all, reductions(0b1, 65, 3)...)
	all = append(all, reductions(0b111111, 2, 1, 3, 2, 1, 2)...)
	for _, c := range []struct {
		name string
		f    func(b *graph.Builder, x graph.ID) graph.ID
	}{
		{"sum", func(b *graph.Builder, x graph.ID) graph.ID { return b.Sum(x) }},
		{"sum of axis 1", func(b *graph.Builder, x graph.ID) graph.ID { return b.Sum(x, 1) }},
		{"mean", func(b *graph.Builder, x graph.ID) graph.ID { return b.Mean(x) }},
		{"mean of axes 0 2", func(b *graph.Builder, x graph.ID) graph.ID { return b.Mean(x, 0, 2) }},
		{"mean kept", func(b *graph.Builder, x graph.ID) graph.ID { return b.MeanKeep(x, 2) }},
	} {
		all = append(all, Case{Name: c.name, Args: args(float(3, 5, 7)), Tol: Sum, Terms: 105,
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return c.f(b, x[0]) })})
	}
	all = append(all, logSumExpCases()...)
	all = append(all, nonfiniteCases()...)
	for _, s := range []graph.Shape{graph.D(3, 1789), graph.D(2, 2503), graph.D(2, 3, 2503), graph.D(2, 3002)} {
		all = append(all, longRows(s))
	}
	all = append(all, Case{Name: "long samples with channels", Args: args(float(2, 2503, 3), float(2, 1, 1), float(1, 1, 3)), Tol: Whole, NoDiff: true,
		Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			s := b.Shape(x[0])
			y := b.Add(b.Mul(x[0], b.BroadcastTo(x[1], s)), b.BroadcastTo(x[2], s))
			return append(b.Grad(b.Sum(b.Sin(y)), x...), y, b.SumKeep(y, 0, 1), b.SumKeep(y, 1, 2))
		}})
	all = append(all, Case{Name: "max with ties", Args: args(floatOf(List(2, 1, 2, 0), 3, 4)), Tol: Exact, NoDiff: true,
		Build: apply(graph.Reduce{Fn: graph.ReduceMax, Axes: 2})})
	return all
}

// logSumExpCases are a composition whose parts must keep infinities and huge
// numbers as they are.
func logSumExpCases() []Case {
	of := func(axes ...int) func(*graph.Builder, []graph.ID) []graph.ID {
		return one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.LogSumExp(x[0], axes...) })
	}
	inf, nan := math.Inf(1), math.NaN()
	extreme := List(-inf, -inf, -inf, -inf, 1, 2, 1e30, 1e30, -1e30, inf, 0, -inf, nan, 0, 1, -3e38, -3e38, -inf, 3e38, 3e38, 0, inf, nan, 0)
	return []Case{
		{Name: "log-sum-exp", Args: args(float(3, 5, 7)), Build: of(), Tol: Near},
		{Name: "log-sum-exp of axis 1", Args: args(float(3, 5, 7)), Build: of(1), Tol: Near},
		{Name: "log-sum-exp of axes 0 2", Args: args(floatOf(Between(-30, 30), 3, 5, 7)), Build: of(0, 2), Tol: Near},
		{Name: "log-sum-exp of one", Args: args(float(3, 1)), Build: of(1), Tol: Near},
		{Name: "log-sum-exp of infinities", Args: args(floatOf(extreme, 8, 3)), Build: of(1), Tol: Near, NoDiff: true},
	}
}

// nonfiniteCases are reductions that a training which has diverged comes to: of rows, and of
// columns, with an infinity or NaN somewhere, or none. Others are ones of both signs, of
// which every result is exact.
func nonfiniteCases() (all []Case) {
	const rows, columns = 8, 700
	inf, nan := math.Inf(1), math.NaN()
	values, turned := make([]float64, rows*columns), make([]float64, rows*columns)
	for i := range values {
		values[i] = float64(1 - 2*(i%2))
	}
	for _, at := range []struct {
		row, column int
		is          float64
	}{{1, 5, nan}, {2, 300, inf}, {3, 699, -inf}, {4, 0, inf}, {4, 650, -inf}, {5, 0, nan}, {5, 1, inf}, {6, 690, nan}} {
		values[at.row*columns+at.column] = at.is
	}
	for i, v := range values {
		turned[i%columns*rows+i/columns] = v
	}
	build := func(axis int) func(*graph.Builder, []graph.ID) []graph.ID {
		return func(b *graph.Builder, x []graph.ID) []graph.ID {
			m := b.MeanKeep(x[0], axis)
			return []graph.ID{m, b.SumKeep(x[0], axis), b.MaxKeep(x[0], axis), b.MeanKeep(b.Square(b.Sub(x[0], m)), axis)}
		}
	}
	return []Case{
		{Name: "rows with infinities", Args: args(floatOf(List(values...), rows, columns)), Build: build(1), Tol: Near, NoDiff: true},
		{Name: "columns with infinities", Args: args(floatOf(List(turned...), columns, rows)), Build: build(0), Tol: Near, NoDiff: true},
	}
}

// reductions are both reductions of a shape over a set of axes.
func reductions(axes uint8, dims ...int) []Case {
	sum := graph.Reduce{Fn: graph.ReduceSum, Axes: axes}
	largest := graph.Reduce{Fn: graph.ReduceMax, Axes: axes}
	n := graph.D(dims...).Len()
	return []Case{
		{Name: fmt.Sprintf("%s %v", sum, dims), Args: args(float(dims...)), Build: apply(sum), Tol: Sum, Terms: n},
		{Name: fmt.Sprintf("%s %v", largest, dims), Args: args(floatOf(Distinct, dims...)), Build: apply(largest), Tol: Exact},
	}
}

// longRows is a softmax and its gradient, and sums over rows and columns, of rows that
// a device may cut into pieces of different lengths.
func longRows(s graph.Shape) Case {
	k := s.Rank() - 1
	return Case{Name: fmt.Sprintf("rows of %d", s.At(k)), Args: args(float(s.Slice()...), float(s.With(k, 1).Slice()...)), Tol: Whole, NoDiff: true,
		Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Exp(b.Sub(x[0], b.BroadcastTo(x[1], s)))
			p := b.Div(y, b.BroadcastTo(b.SumKeep(y, k), s))
			return []graph.ID{p, b.SumKeep(p, 0), b.SumKeep(b.Mul(p, x[0]), k), b.MaxKeep(b.Mul(p, x[0]), k), b.Grad(b.LogSumExp(b.Mul(x[0], y), k), x[1])[0]}
		}}
}
