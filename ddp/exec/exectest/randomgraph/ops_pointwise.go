package randomgraph

import (
	"math"

	"ebtrain/ddp/graph"
)

func (g *grower) unary() {
	b, x := g.b, g.real()
	smooth := []func() graph.ID{
		func() graph.ID { return b.Neg(x) },
		func() graph.ID { return b.Tanh(x) },
		func() graph.ID { return b.Sigmoid(x) },
		func() graph.ID { return b.Softplus(x) },
		func() graph.ID { return b.Sin(x) },
		func() graph.ID { return b.Cos(x) },
		func() graph.ID { return b.Erf(x) },
		func() graph.ID { return b.Scale(x, 0.5) },
		func() graph.ID { return b.Shift(x, -0.25) },
		func() graph.ID { return b.Exp(b.Neg(b.Square(x))) },
		func() graph.ID { return b.Exp(b.Tanh(x)) },
		func() graph.ID { return b.Log(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Sqrt(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Recip(b.Shift(b.Square(x), 1)) },
		func() graph.ID { return b.Pow(b.Shift(b.Square(x), 1), pick(g.Choices, -1.5, 0.5, -0.5)) },
		func() graph.ID { return g.tame(b.Pow(x, pick(g.Choices, 2.0, 3.0))) },
		func() graph.ID { return g.tame(b.Square(x)) },
		func() graph.ID { return b.StopGrad(x) },
	}
	kinked := []func() graph.ID{
		func() graph.ID { return b.Relu(x) },
		func() graph.ID { return b.Abs(x) },
		func() graph.ID { return b.LeakyRelu(x, 0.2) },
		func() graph.ID { return b.Elu(x, 0.7) },
		func() graph.ID { return b.Elu(x, 1) },
	}
	if k := g.n(len(smooth) + len(kinked)); k < len(smooth) || !g.kinks {
		g.put(smooth[k%len(smooth)](), false)
	} else {
		g.jumps = g.jumps || !g.exact[x]
		g.put(kinked[k-len(smooth)](), false)
	}
}

// binary combines values that broadcast to one shape.
func (g *grower) binary() {
	b := g.b
	x, y := g.partners()
	switch k := g.n(10); {
	case k == 0:
		g.put(b.Div(x, b.Shift(b.Square(y), 1)), false)
	case k == 1 && g.kinks:
		g.jumps = g.jumps || !g.exact[x] || !g.exact[y]
		g.put(pick(g.Choices, b.Max, b.Min)(x, y), g.exact[x] && g.exact[y])
	case k < 4:
		g.put(b.Sub(x, y), false)
	case k < 7:
		g.put(g.tame(b.Mul(x, y)), false)
	default:
		g.put(b.Add(x, y), false)
	}
}

// partners are two values whose shapes fit together.
func (g *grower) partners() (x, y graph.ID) {
	x = g.real()
	for range 12 {
		if y = g.any(); g.b.Type(y).DType == g.b.Type(x).DType && g.fit(x, y) {
			return x, y
		}
	}
	return x, g.b.Tanh(x)
}

// fit says whether shapes broadcast to one that is not too big.
func (g *grower) fit(x, y graph.ID) bool {
	s, t := g.b.Shape(x), g.b.Shape(y)
	n := 1
	for i := 1; i <= max(s.Rank(), t.Rank()); i++ {
		d, e := 1, 1
		if i <= s.Rank() {
			d = s.At(s.Rank() - i)
		}
		if i <= t.Rank() {
			e = t.At(t.Rank() - i)
		}
		if d != e && d != 1 && e != 1 {
			return false
		}
		n *= max(d, e)
	}
	return n <= g.most
}

// compare applies functions that jump to values without rounding.
func (g *grower) compare() {
	b := g.b
	for range 6 {
		x := g.any()
		if !g.exact[x] {
			continue
		}
		if b.Type(x).DType.IsFloat() && g.n(4) == 0 {
			f := pick(g.Choices, graph.EluD, graph.EluDD, graph.LeakyStep)
			g.put(g.apply(graph.Unary{Fn: f, Bits: math.Float64bits(0.7)}, x), false)
			return
		}
		if b.Type(x).DType.IsFloat() && g.n(2) == 0 {
			f := pick(g.Choices, graph.Unary{Fn: graph.Step}, graph.Unary{Fn: graph.Sign}, graph.Unary{Fn: graph.Abs}, graph.Unary{Fn: graph.Neg}, graph.Unary{Fn: graph.Relu},
				graph.Unary{Fn: graph.LeakyStep, Bits: math.Float64bits(0.5)}, graph.Unary{Fn: graph.LeakyRelu, Bits: math.Float64bits(0.5)})
			g.put(g.apply(f, x), true)
			return
		}
		if y := g.any(); g.exact[y] && b.Type(x) == b.Type(y) {
			g.put(pick(g.Choices, b.Greater, b.Equal, b.Max, b.Min)(x, y), true)
			return
		}
	}
	if x := g.any(); !b.Type(x).DType.IsFloat() { // whole numbers wrap around
		g.put(pick(g.Choices, b.Add, b.Sub, b.Mul)(x, x), true)
	}
}

// chain is some functions of one value, and a sum with its start: what fused
// groups are made of.
func (g *grower) chain() {
	b, x := g.b, g.real()
	y := x
	for range 2 + g.n(5) {
		switch g.n(6) {
		case 0:
			y = b.Tanh(y)
		case 1:
			y = b.Add(y, x)
		case 2:
			y = b.Scale(y, 0.5)
		case 3:
			y = g.tame(b.Mul(y, x))
		case 4:
			y = b.Sub(b.Cos(y), x)
		case 5:
			y = b.Mul(b.Sigmoid(y), x)
		}
		if g.n(3) == 0 {
			g.put(y, false)
		}
	}
	g.put(y, false)
}

// convert changes element types: of whole numbers freely, of others where no
// rounding moves them to another integer.
func (g *grower) convert() {
	b, x := g.b, g.any()
	from := b.Type(x).DType
	if !from.IsFloat() {
		g.put(b.Cast(x, pick(g.Choices, graph.I32, graph.I64, graph.U8)), true)
		g.put(b.Cast(x, g.float), g.float == graph.F64)
		return
	}
	if g.batch > 0 {
		return
	}
	to := pick(g.Choices, graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64)
	switch {
	case to.IsFloat():
		y := b.Cast(x, to)
		g.put(y, g.exact[x] && to.Size() >= from.Size())
		g.put(b.Cast(y, g.float), false)
	case g.exact[x]:
		if leaf, ok := b.Node(x).Op.(graph.Leaf); ok && leaf.Type.DType == graph.F32 {
			g.put(b.Cast(x, to), true)
		}
	}
}
