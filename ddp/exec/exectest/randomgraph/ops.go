package randomgraph

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// keyName is the input that names draws.
const keyName = "key"

const (
	meanOp = collective.Mean
	sumOp  = collective.Sum
)

// step adds a random op on values of the pool.
func (g *grower) step() {
	ops := []func(){g.unary, g.unary, g.binary, g.binary, g.binary, g.reduce, g.move, g.move, g.join, g.product, g.convolve, g.pooling, g.resample,
		g.index, g.compare, g.convert, g.leafless, g.chain}
	if g.pixels {
		ops = append(ops, g.convolve, g.convolve, g.convolve, g.convolve, g.convolve, g.convolve, g.pooling, g.pooling, g.resample, g.resample)
	}
	if g.batch > 0 {
		ops = append(ops, g.statistics, g.draw)
	} else {
		ops = append(ops, g.allReduce, g.parts, g.sums, g.draw)
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
	var in []graph.ID
	for range 1 + g.n(3) {
		in = append(in, g.real())
	}
	for _, y := range g.b.AllReduce(pick(g.Choices, meanOp, sumOp), "all", in...) {
		g.put(g.b.Scale(y, 0.5), false)
	}
}

// parts scatters, takes apart, gathers and places vectors of which each rank has a part.
func (g *grower) parts() {
	x, b := g.real(), g.b
	n := b.Shape(x).Len()
	if n == 0 || n >= g.most {
		return
	}
	x = b.Reshape(x, graph.D(n))
	if more := (g.ranks - n%g.ranks) % g.ranks; more > 0 {
		x = b.Pad(x, 0, 0, more)
	}
	part := b.Part(g.ranks, x)
	if g.n(2) == 0 {
		part = b.Scale(b.ReduceScatter(pick(g.Choices, meanOp, sumOp), g.ranks, "parts", x), 0.5)
	}
	g.put(part, false)
	if y := g.late(); b.Type(y) == b.Type(part) {
		part = g.tame(b.Mul(part, y))
	}
	switch g.n(3) {
	case 0:
		g.put(b.AllGather(g.ranks, "wholes", part), false)
	case 1:
		g.put(b.Placed(g.ranks, part), false)
	}
}

// large is the size of arrays of which a compiler finds sums that follow from others.
const large = 1 << 12

// sums are those of a large array and of combinations of it, some of them reduced.
func (g *grower) sums() {
	if !g.one(6) { // they take long
		return
	}
	b := g.b
	g.leaf++
	t := graph.T(pick(g.Choices, g.float, g.float, graph.I32, graph.I64, graph.U8), large/4+g.n(9), 4+g.n(3))
	x := b.Input(fmt.Sprint("x", g.leaf), t)
	if !t.DType.IsFloat() {
		g.wholeSums(x)
		return
	}
	y := b.Sub(x, pick(g.Choices, b.MeanKeep(x, 0), b.Full(graph.T(g.float, 1, b.Shape(x).At(1)), 0.5)))
	for range 2 + g.n(3) {
		sum := b.SumKeep(pick(g.Choices, x, y, b.Neg(x), b.Scale(y, 0.5), b.Add(x, y)), 0)
		if g.n(2) == 0 {
			sum = b.AllReduce(meanOp, "sums", sum)[0]
		}
		g.put(b.Scale(sum, 1.0/large), false)
	}
}

// wholeSums are sums of whole numbers, which no other sums may stand for.
func (g *grower) wholeSums(x graph.ID) {
	b := g.b
	g.leaf++
	y := b.Input(fmt.Sprint("x", g.leaf), b.Type(x))
	n := b.Shape(x).Len()
	twice := b.BroadcastTo(b.Reshape(x, graph.D(1, n)), graph.D(2, n))
	for _, z := range []graph.ID{x, y, pick(g.Choices, b.Add, b.Sub)(x, y), twice} {
		g.put(b.MaxKeep(b.SumKeep(z, 0), 1), true)
	}
}

func (g *grower) draw() {
	s := pick(g.Choices, g.shapes...)
	if s.Rank() == 0 {
		return
	}
	key := g.b.Input(keyName, graph.KeyType)
	dist := pick(g.Choices, graph.Normal, graph.Uniform, graph.Rademacher)
	g.put(g.b.Draw(key, dist, philox.Testing, uint16(g.n(3)), graph.Type{DType: g.float, Shape: s}), dist == graph.Rademacher)
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
