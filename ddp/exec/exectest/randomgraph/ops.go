package randomgraph

import (
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
