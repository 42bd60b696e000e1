package exectest

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// unaryTable is each function with its parameters and a place to try it.
var unaryTable = []struct {
	fn   graph.UnaryFn
	a    []float64
	fill Fill
	tol  Tolerance
}{
	{graph.Neg, nil, Normal, Exact},
	{graph.Abs, nil, NoKink, Exact},
	{graph.Sign, nil, NoKink, Exact},
	{graph.Step, nil, NoKink, Exact},
	{graph.Relu, nil, NoKink, Exact},
	{graph.LeakyRelu, []float64{0.2, 0.01}, NoKink, Near},
	{graph.LeakyStep, []float64{0.2}, NoKink, Near},
	{graph.Elu, []float64{1, 0.7}, NoKink, Near},
	{graph.EluD, []float64{1, 0.7}, NoKink, Near},
	{graph.EluDD, []float64{1, 0.7}, NoKink, Near},
	{graph.Softplus, nil, Between(-4, 4), Near},
	{graph.Sigmoid, nil, Between(-4, 4), Near},
	{graph.Tanh, nil, Between(-2, 2), Near},
	{graph.Exp, nil, Between(-3, 3), Near},
	{graph.Log, nil, Between(0.3, 3), Near},
	{graph.Sqrt, nil, Between(0.3, 3), Near},
	{graph.Square, nil, Normal, Near},
	{graph.Recip, nil, NoKink, Near},
	{graph.PowC, []float64{3, -2}, NoKink, Near},
	{graph.PowC, []float64{2.5, -0.5, 0, 1, 2}, Between(0.3, 3), Near},
	{graph.Scale, []float64{-1.5, 0, 1.0 / 3}, Normal, Near},
	{graph.Shift, []float64{0.25, -3}, Normal, Near},
	{graph.Sin, nil, Between(-5, 5), Near},
	{graph.Cos, nil, Between(-5, 5), Near},
	{graph.Erf, nil, Between(-2, 2), Near},
}

func unaryCases() []Case {
	var all []Case
	for _, u := range unaryTable {
		params := u.a
		if !u.fn.HasParam() {
			params = []float64{0}
		}
		for i, a := range params {
			op := graph.Unary{Fn: u.fn, Bits: math.Float64bits(a)}
			shapes := []graph.Shape{graph.D(2, 3, 5, 7)}
			if i == 0 {
				shapes = append(shapes, graph.D(), graph.D(67))
			}
			for _, s := range shapes {
				all = append(all, Case{Name: fmt.Sprintf("%s %v", op, s), Args: args(Arg{Shape: s, Fill: u.fill}), Build: apply(op), Tol: u.tol})
			}
		}
	}
	return append(all, extremeCases()...)
}

// extremeCases are functions far out, where careless formulas overflow, and
// at kinks, where the doc comments say which side counts.
func extremeCases() []Case {
	var all []Case
	far := List(-100, -88, -30, -1e-6, 0, 1e-6, 30, 88, 100)
	for _, fn := range []graph.UnaryFn{graph.Softplus, graph.Sigmoid, graph.Tanh, graph.Erf, graph.Elu, graph.Relu, graph.Step, graph.Sign, graph.LeakyStep, graph.EluD, graph.EluDD} {
		op := graph.Unary{Fn: fn}
		if fn.HasParam() {
			op.Bits = math.Float64bits(0.5)
		}
		all = append(all, Case{Name: fmt.Sprintf("extreme %s", op), Args: args(floatOf(far, 9)), Build: apply(op), Tol: Near, NoDiff: true})
	}
	return append(all, zeroCases()...)
}

// signedZeros are zeros and numbers of both signs, and what is not a number.
var signedZeros = List(math.Copysign(0, -1), 0, math.Copysign(0, -1), 0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.NaN())

// zeroCases are functions of zeros of both signs, infinities and NaN. Their
// reciprocals tell the signs of zeros. There are enough elements for vectors and
// tiles.
func zeroCases() []Case {
	var all []Case
	signed := func(f func(b *graph.Builder, x []graph.ID) graph.ID) func(*graph.Builder, []graph.ID) []graph.ID {
		return func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := f(b, x)
			return []graph.ID{y, b.Recip(y)}
		}
	}
	for _, fn := range []graph.UnaryFn{graph.Neg, graph.Abs, graph.Sign, graph.Relu, graph.LeakyRelu, graph.Elu, graph.Tanh, graph.Sqrt, graph.Square, graph.Recip, graph.Scale, graph.Sin, graph.Erf} {
		op := graph.Unary{Fn: fn}
		if fn.HasParam() {
			op.Bits = math.Float64bits(0.5)
		}
		all = append(all, Case{Name: fmt.Sprintf("zeros of %s", op), Args: args(floatOf(signedZeros, 283)), Tol: Near, NoDiff: true,
			Build: signed(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Apply(op, x...)[0] })})
	}
	others := List(0, math.Copysign(0, -1), 1, math.Copysign(0, -1), 0, math.NaN(), math.Inf(-1))
	for _, p := range pairTable {
		if p.fn == graph.Div {
			continue // its reciprocal is its inverse to the planner
		}
		for _, shape := range []graph.Shape{graph.D(), graph.D(1), graph.D(41, 1), graph.D(41, 283)} {
			all = append(all, Case{Name: fmt.Sprintf("zeros of %s %v", p.fn, shape), Args: args(floatOf(signedZeros, 41, 283), Arg{Shape: shape, Fill: others}), Tol: Near, NoDiff: true,
				Build: signed(func(b *graph.Builder, x []graph.ID) graph.ID { return p.f(b, x[0], x[1]) })})
		}
	}
	return append(all, Case{Name: "maxima of zeros", Args: args(floatOf(List(math.Copysign(0, -1), 0, math.Copysign(0, -1), -1, math.Copysign(0, -1)), 41, 30)), Tol: Exact, NoDiff: true,
		Build: signed(func(b *graph.Builder, x []graph.ID) graph.ID { return b.MaxKeep(x[0], 1) })})
}

// pairShapes are the shapes of operands: equal, and broadcast in each way.
var pairShapes = [][2]graph.Shape{
	{graph.D(), graph.D()},
	{graph.D(67), graph.D(67)},
	{graph.D(2, 3, 5), graph.D(2, 3, 5)},
	{graph.D(3, 1), graph.D(1, 4)},
	{graph.D(2, 3, 4), graph.D(4)},
	{graph.D(), graph.D(2, 3)},
	{graph.D(2, 3, 4, 5), graph.D(3, 1, 1)},
	{graph.D(2, 1, 3, 1, 2), graph.D(1, 2, 3, 2, 1)},
}

func (b pair) build() func(*graph.Builder, []graph.ID) []graph.ID {
	return one(func(g *graph.Builder, x []graph.ID) graph.ID { return b.f(g, x[0], x[len(x)-1]) })
}

type pair struct {
	fn   graph.BinaryFn
	f    func(b *graph.Builder, x, y graph.ID) graph.ID
	x, y Fill
	tol  Tolerance
}

// pairTable is each function of two numbers; the fills never tie.
var pairTable = []pair{
	{graph.Add, (*graph.Builder).Add, Normal, Normal, Near},
	{graph.Sub, (*graph.Builder).Sub, Normal, Normal, Near},
	{graph.Mul, (*graph.Builder).Mul, Normal, Normal, Near},
	{graph.Div, (*graph.Builder).Div, Normal, NoKink, Near},
	{graph.Max, (*graph.Builder).Max, Distinct, halves, Exact},
	{graph.Min, (*graph.Builder).Min, Distinct, halves, Exact},
	{graph.Greater, (*graph.Builder).Greater, Distinct, halves, Exact},
	{graph.Equal, (*graph.Builder).Equal, Distinct, halves, Exact},
}

// halves lie in the middle between any two Distinct numbers.
var halves = List(-0.3125, 0.1875, 0.4375, -0.0625, 0.0625)

func binaryCases() []Case {
	var all []Case
	for _, p := range pairTable {
		for _, s := range pairShapes {
			all = append(all, Case{
				Name: fmt.Sprintf("%s %v %v", p.fn, s[0], s[1]), Tol: p.tol, Build: p.build(),
				Args: args(Arg{Shape: s[0], Fill: p.x}, Arg{Shape: s[1], Fill: p.y}),
			})
		}
		all = append(all, Case{Name: fmt.Sprintf("%s of x with itself", p.fn), Args: args(floatOf(NoKink, 3, 5)), Tol: p.tol, Build: p.build(), NoDiff: p.fn == graph.Equal})
		if p.tol == Exact {
			all = append(all, Case{
				Name: fmt.Sprintf("%s with ties", p.fn), Tol: Exact, Build: p.build(), NoDiff: true,
				Args: args(floatOf(List(1, 2, 3, 0), 12), floatOf(List(1, 3, 2), 12)),
			})
		}
	}
	truth := Arg{Shape: graph.D(3, 7), Fill: List(0, 1, 1, 0, -2), Fixed: true}
	all = append(all,
		Case{Name: "select", Args: args(truth, float(3, 7), float(3, 7)), Build: apply(graph.Select{}), Tol: Exact},
		Case{Name: "select hides nan", NoDiff: true, Tol: Exact,
			Args:  args(Arg{Shape: graph.D(4), Fill: List(0, 1), Fixed: true}, floatOf(List(math.NaN(), 1), 4), floatOf(List(2, math.Inf(1)), 4)),
			Build: apply(graph.Select{})},
		Case{Name: "mul by nan", NoDiff: true, Tol: Exact, Args: args(float(3, 7)),
			Build: one(func(b *graph.Builder, x []graph.ID) graph.ID { return b.Mul(x[0], b.Full(b.Type(x[0]), math.NaN())) })},
	)
	return all
}
