package randomgraph

import (
	"math"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

const (
	meanOp = collective.Mean
	sumOp  = collective.Sum
)

// step adds a random op on values of the pool.
func (g *grower) step() {
	ops := []func(){g.unary, g.unary, g.binary, g.binary, g.binary, g.reduce, g.move, g.move, g.join, g.product, g.convolve, g.pooling, g.resample,
		g.index, g.compare, g.convert, g.leafless, g.chain}
	if g.batch > 0 {
		ops = append(ops, g.statistics)
	} else {
		ops = append(ops, g.allReduce, g.draw)
	}
	pick(g.Choices, ops...)()
}

// tame keeps magnitudes near 1.
func (g *grower) tame(y graph.ID) graph.ID {
	if y == 0 {
		return 0
	}
	if n := g.n(3); n == 0 {
		return g.b.Tanh(y)
	} else if n == 1 {
		return g.b.Sin(y)
	}
	return g.b.Scale(y, 0.25)
}

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

func (g *grower) reduce() {
	b, x := g.b, g.late()
	rank := b.Shape(x).Rank()
	axes := []int{}
	for i := range rank {
		if g.n(2) == 0 {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 { // the builder takes none for all
		for i := range rank {
			axes = append(axes, i)
		}
	}
	empty := b.Shape(x).Len() == 0
	switch k := g.n(6); {
	case !b.Type(x).DType.IsFloat():
		if k < 3 && !empty {
			g.put(b.MaxKeep(x, axes...), true)
		} else {
			g.put(b.SumKeep(x, axes...), true)
		}
	case empty:
		g.put(b.SumKeep(x, axes...), false)
	case k == 0:
		g.put(b.Mean(x, axes...), false)
	case k < 3:
		g.put(b.MeanKeep(x, axes...), false)
	case k == 3 && g.kinks:
		g.jumps = g.jumps || !g.exact[x]
		g.put(b.MaxKeep(x, axes...), g.exact[x])
	case k == 4:
		m := b.MeanKeep(x, axes...)
		g.put(m, false)
		g.put(b.MeanKeep(b.Square(b.Sub(x, m)), axes...), false)
	default:
		g.put(g.tame(b.SumKeep(x, axes...)), false)
	}
}

// move rearranges a value of any type.
func (g *grower) move() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	exact := g.exact[x]
	if s.Rank() == 0 {
		t := pick(g.Choices, g.shapes...)
		if t.Len() <= g.most {
			g.put(b.BroadcastTo(x, t), exact)
		}
		return
	}
	axis := g.n(s.Rank())
	n := s.At(axis)
	switch g.n(7) {
	case 0:
		perm := make([]int, s.Rank())
		for i := range perm {
			perm[i] = i
		}
		for i := len(perm) - 1; i > 0; i-- {
			j := g.n(i + 1)
			perm[i], perm[j] = perm[j], perm[i]
		}
		g.put(b.Transpose(x, perm...), exact)
	case 1:
		if s.Len() > 0 {
			start := g.n(n)
			g.put(b.Slice(x, axis, start, start+1+g.n(n-start), 1+g.n(3)), exact)
		}
	case 2:
		lo, hi, gap := graph.D(make([]int, s.Rank())...), graph.D(make([]int, s.Rank())...), graph.D(make([]int, s.Rank())...)
		for i := range s.Rank() {
			if g.n(2) == 0 {
				lo, hi, gap = lo.With(i, g.n(3)), hi.With(i, g.n(3)), gap.With(i, g.n(2))
			}
		}
		g.put(g.apply(graph.Pad{Lo: lo, Hi: hi, Gap: gap}, x), exact)
	case 3:
		g.put(b.Reshape(x, graph.D(s.Len())), exact)
	case 4:
		g.put(b.Reshape(x, g.regroup(s)), exact)
	case 5:
		if t := graph.D(append([]int{2}, s.Slice()...)[:min(s.Rank()+1, graph.MaxRank)]...); t.Rank() > s.Rank() && t.Len() <= g.most {
			g.put(b.BroadcastTo(x, t), exact)
		}
	default:
		if s.Rank() == 4 || s.Len() == 0 {
			return
		}
		// an image of four axes
		t := graph.D(1, 1, 1, s.Len())
		for _, d := range []int{2, 3, 5, 7} {
			if t.At(3)%d == 0 && g.n(3) > 0 {
				t = t.With(2, t.At(2)*d).With(3, t.At(3)/d)
			}
		}
		if c := pick(g.Choices, 1, 2, 3, 4); t.At(3)%c == 0 {
			t = t.With(1, c).With(3, t.At(3)/c)
		}
		g.put(b.Reshape(x, t), exact)
	}
}

// regroup joins two neighbouring axes of s, or cuts one.
func (g *grower) regroup(s graph.Shape) graph.Shape {
	d := s.Slice()
	i := g.n(len(d))
	if i+1 < len(d) && g.n(2) == 0 {
		d[i] *= d[i+1]
		return graph.D(append(d[:i+1], d[i+2:]...)...)
	}
	for _, f := range []int{2, 3, 5} {
		if d[i]%f == 0 && d[i] > 0 && len(d) < graph.MaxRank {
			d[i] /= f
			return graph.D(append(append(append([]int{}, d[:i]...), f), d[i:]...)...)
		}
	}
	return s
}

// join concatenates or selects.
func (g *grower) join() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	if s.Rank() == 0 {
		return
	}
	if g.n(2) == 0 {
		axis := g.n(s.Rank())
		parts, exact := []graph.ID{x}, g.exact[x]
		for range 1 + g.n(3) {
			y := x
			for range 6 {
				if z := g.any(); b.Type(z).DType == b.Type(x).DType && b.Shape(z).Rank() == s.Rank() && b.Shape(z).With(axis, s.At(axis)) == s {
					y = z
				}
			}
			parts, exact = append(parts, y), exact && g.exact[y]
		}
		g.put(g.apply(graph.Concat{Axis: axis}, parts...), exact)
		return
	}
	for _, cond := range g.pool {
		if g.exact[cond] && b.Type(cond) == b.Type(x) && g.n(2) == 0 {
			y := cond
			if b.Type(x).DType.IsFloat() {
				y = b.Neg(x)
			}
			g.put(b.Select(cond, x, y), g.exact[x])
			return
		}
	}
}

// product multiplies matrices, transposed as needed.
func (g *grower) product() {
	b := g.b
	x := g.matrix(g.real())
	for range 8 {
		y := g.any()
		if b.Type(y).DType != b.Type(x).DType {
			continue
		}
		y = g.matrix(y)
		for k := range 4 {
			if z := g.apply(graph.MatMul{TransX: k&1 == 1, TransY: k&2 == 2}, x, y); z != 0 {
				g.put(g.tame(z), false)
				return
			}
		}
	}
	g.put(g.tame(g.apply(graph.MatMul{TransY: true}, x, x)), false)
}

// matrix is x with two axes.
func (g *grower) matrix(x graph.ID) graph.ID {
	s := g.b.Shape(x)
	if s.Rank() == 2 {
		return x
	}
	rows := 1
	for _, d := range s.Slice()[:s.Rank()/2] {
		rows *= d
	}
	if s.Len() == 0 {
		return g.b.Reshape(x, graph.D(0, 3))
	}
	return g.b.Reshape(x, graph.D(rows, s.Len()/rows))
}

// images is a value with four axes, none empty, or 0.
func (g *grower) images() graph.ID {
	for range 10 {
		if x := g.late(); g.b.Shape(x).Rank() == 4 && g.b.Shape(x).Len() > 0 && g.b.Type(x).DType == g.float {
			return x
		}
	}
	return 0
}

// window is a random one.
func (g *grower) window() graph.Window {
	k := func() int { return 1 + g.n(4) }
	w := graph.Window{KH: k(), KW: k(), StrideH: 1 + g.n(3), StrideW: 1 + g.n(3), PadT: g.n(3), PadB: g.n(3), PadL: g.n(3), PadR: g.n(3), DilH: 1, DilW: 1}
	if g.n(2) == 0 { // a usual one
		w = graph.SquareWindow(pick(g.Choices, 1, 2, 3, 3, 4), 1+g.n(2), g.n(2))
	}
	if g.one(4) {
		w.DilH, w.DilW = 1+g.n(2), 1+g.n(2)
	}
	return w
}

func (g *grower) convolve() {
	x := g.images()
	if x == 0 {
		return
	}
	conv := graph.Conv{Window: g.window(), Groups: 1}
	s := g.b.Shape(x)
	if c := s.At(1); g.one(3) {
		conv.Groups = pick(g.Choices, 2, 3, c)
	}
	if s.At(1)%conv.Groups != 0 {
		conv.Groups = 1
	}
	o := conv.Groups * (1 + g.n(4))
	var w graph.ID
	switch g.n(3) {
	case 0:
		w = g.weight(graph.D(o, s.At(1)/conv.Groups, conv.KH, conv.KW))
		g.put(g.tame(g.apply(graph.Conv2D{Conv: conv}, x, w)), false)
	case 1: // the gradient of an image: x is that of the result
		if s.At(1)%conv.Groups == 0 {
			w = g.weight(graph.D(s.At(1), 1+g.n(3), conv.KH, conv.KW))
			h, wd := unpooled(conv.Window, s.At(2), s.At(3))
			g.put(g.tame(g.apply(graph.Conv2DGradX{Conv: conv, H: h, W: wd}, w, x)), false)
		}
	default:
		if oh, ow := conv.Out(s.At(2), s.At(3)); oh > 0 && ow > 0 {
			dy := g.weight(graph.D(s.At(0), o, oh, ow))
			g.put(g.tame(g.apply(graph.Conv2DGradW{Conv: conv}, x, dy)), false)
		}
	}
}

// unpooled is an image of which w makes h×wd results.
func unpooled(w graph.Window, h, wd int) (int, int) {
	return (h-1)*w.StrideH + w.DilH*(w.KH-1) + 1 - w.PadT - w.PadB, (wd-1)*w.StrideW + w.DilW*(w.KW-1) + 1 - w.PadL - w.PadR
}

// weight is a new variable.
func (g *grower) weight(s graph.Shape) graph.ID {
	g.leaf++
	if s.Len() > g.most {
		return 0
	}
	id := g.b.Var("w"+itoa(g.leaf), graph.Type{DType: g.float, Shape: s})
	g.put(id, true)
	return id
}

func (g *grower) pooling() {
	x := g.images()
	if x == 0 {
		return
	}
	s, w := g.b.Shape(x), g.window()
	switch k := g.n(4); {
	case k == 0:
		h, wd := unpooled(w, s.At(2), s.At(3))
		g.put(g.tame(g.apply(graph.SumUnpool2D{Window: w, H: h, W: wd}, x)), false)
	case k == 1 && g.kinks:
		w.DilH, w.DilW = 1, 1
		y := g.apply(graph.MaxPool2D{Window: w}, x)
		if y == 0 {
			return
		}
		g.jumps = g.jumps || !g.exact[x]
		g.put(y, g.exact[x])
		if g.exact[x] {
			g.put(g.apply(graph.PlaneScatter{H: s.At(2), W: s.At(3)}, g.b.Node(y).Out...), false)
		}
	default:
		g.put(g.tame(g.apply(graph.SumPool2D{Window: w}, x)), false)
	}
}

func (g *grower) resample() {
	x := g.images()
	if x == 0 {
		return
	}
	up := graph.Upsample2D{Mode: pick(g.Choices, graph.Nearest, graph.Bilinear), Scale: 1 + g.n(3)}
	if g.n(2) == 0 {
		g.put(g.tame(g.apply(graph.Upsample2DT(up), x)), false)
		return
	}
	g.put(g.apply(up, x), false)
}

// index gathers and scatters rows and pixels at given places.
func (g *grower) index() {
	b, x := g.b, g.late()
	s := b.Shape(x)
	if s.Rank() == 0 || s.Len() == 0 {
		return
	}
	places := func(below int, shape graph.Shape) graph.ID {
		g.leaf++
		return b.Input("index"+itoa(below)+"."+itoa(g.leaf), graph.Type{DType: graph.I32, Shape: shape})
	}
	if g.batch > 0 { // an input of a shard's samples would be split
		return
	}
	exact := g.exact[x] && !b.Type(x).DType.IsFloat()
	switch k := g.n(4); {
	case k == 0:
		g.put(g.apply(graph.Gather{}, x, places(s.At(0), graph.D(1+g.n(7)))), g.exact[x])
	case k == 1:
		rows := 1 + g.n(6)
		g.put(g.apply(graph.ScatterAdd{Rows: rows}, x, places(rows, graph.D(s.At(0)))), exact)
	case s.Rank() == 4 && k == 2:
		g.put(g.apply(graph.PlaneGather{}, x, places(s.At(2)*s.At(3), graph.D(s.At(0), s.At(1), 1+g.n(3), 1+g.n(3)))), g.exact[x])
	case s.Rank() == 4:
		h, w := 1+g.n(4), 1+g.n(4)
		g.put(g.apply(graph.PlaneScatter{H: h, W: w}, x, places(h*w, s)), exact)
	}
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

// leafless are values of nothing.
func (g *grower) leafless() {
	s := pick(g.Choices, g.shapes...)
	t := graph.Type{DType: g.float, Shape: s}
	if s.Rank() > 0 && g.n(2) == 0 {
		g.put(g.b.Scale(g.b.Iota(t, g.n(s.Rank())), 0.125), false)
		return
	}
	g.put(g.b.Full(t, pick(g.Choices, 0, 1, -0.5, 0.3)), false)
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

// statistics normalises over samples and ranks, and differentiates through.
func (g *grower) statistics() {
	b, x := g.b, g.real()
	s := b.Shape(x)
	if s.Rank() == 0 || s.Len() == 0 {
		return
	}
	m := b.AllReduce(meanOp, "statistics", b.MeanKeep(x, 0))[0]
	g.put(m, false)
	g.put(b.Sub(x, m), false)
}

// allReduce reduces values together.
func (g *grower) allReduce() {
	if g.float == graph.BF16 {
		return // the group of the test has none
	}
	var in []graph.ID
	for range 1 + g.n(3) {
		in = append(in, g.real())
	}
	for _, y := range g.b.AllReduce(pick(g.Choices, meanOp, sumOp), "all", in...) {
		g.put(g.b.Scale(y, 0.5), false)
	}
}

func (g *grower) draw() {
	s := pick(g.Choices, g.shapes...)
	if s.Rank() == 0 {
		return
	}
	key := g.b.Input("key", graph.KeyType)
	dist := pick(g.Choices, graph.Normal, graph.Uniform, graph.Rademacher)
	g.put(g.b.Draw(key, dist, philox.Testing, uint16(g.n(3)), graph.Type{DType: g.float, Shape: s}), dist == graph.Rademacher)
}
