package randomgraph

import (
	"strconv"

	"ebtrain/ddp/graph"
)

func itoa(n int) string { return strconv.Itoa(n) }

// recurrence unrolls a loop over states of one shape.
func (g *grower) recurrence(l Limits) {
	x := g.real()
	if g.b.Shape(x).Len() == 0 {
		return
	}
	_, y := g.partners()
	if g.b.Shape(y) != g.b.Shape(x) {
		y = g.b.Cos(x)
	}
	steps := 2 + g.n(l.Recurrence)
	body := pick(g.Choices, g.heavyBall, g.leapfrog, g.descent, g.madeUp())
	for range steps {
		if g.b.NumNodes() > l.Nodes*3/4 {
			break
		}
		x, y = body(x, y)
		if g.n(4) == 0 {
			g.put(x, false)
		}
	}
	g.put(x, false)
	g.put(y, false)
}

// force is the derivative of an energy.
func (g *grower) force(x graph.ID) graph.ID {
	e := g.b.Sum(g.b.Softplus(g.b.Sub(g.b.Square(x), g.b.Sin(x))))
	return g.b.Grad(e, x)[0]
}

// heavyBall is v ← 0.9v − 0.1f, x ← x + v.
func (g *grower) heavyBall(x, v graph.ID) (graph.ID, graph.ID) {
	v = g.b.Sub(g.b.Scale(v, 0.9), g.b.Scale(g.b.Tanh(x), 0.1))
	return g.b.Add(x, v), v
}

// leapfrog is half a kick, a drift, half a kick.
func (g *grower) leapfrog(q, p graph.ID) (graph.ID, graph.ID) {
	kick := func() { p = g.b.Sub(p, g.b.Scale(g.b.Sin(q), 0.05)) }
	kick()
	q = g.b.Add(q, g.b.Scale(p, 0.1))
	kick()
	return q, p
}

// descent follows the force of an energy, whose derivative may be taken again.
func (g *grower) descent(x, y graph.ID) (graph.ID, graph.ID) {
	return g.b.Sub(x, g.b.Scale(g.b.Tanh(g.force(x)), 0.1)), y
}

// madeUp is a random body, the same in each step.
func (g *grower) madeUp() func(x, y graph.ID) (graph.ID, graph.ID) {
	moves := make([]int, 2+g.n(3))
	for i := range moves {
		moves[i] = g.n(6)
	}
	return func(x, y graph.ID) (graph.ID, graph.ID) {
		b := g.b
		for _, m := range moves {
			switch m {
			case 0:
				x = b.Add(b.Scale(x, 0.8), b.Scale(y, 0.2))
			case 1:
				x, y = y, x
			case 2:
				y = b.Tanh(b.Sub(y, x))
			case 3:
				x = b.Mul(x, b.Cos(y))
			case 4:
				y = b.Sub(y, b.MeanKeep(x))
			case 5:
				x = b.Sin(b.Add(x, y))
			}
		}
		return x, y
	}
}
