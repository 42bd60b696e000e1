package randomgraph

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// sharded grows a data-parallel step with an optimiser that has state, to be shared out
// among ranks.
func (g *grower) sharded() (*Program, error) {
	g.ranks = 2 + g.n(3)
	g.float, g.most, g.jumps = pick(g.Choices, graph.F32, graph.F32, graph.F64), min(g.most, 600), true
	g.leaves(3 + g.n(4))
	for range 3 + g.n(20) {
		g.step()
	}
	b := g.b
	loss := b.Zeros(graph.T(g.float))
	for range 1 + g.n(4) {
		if y := g.late(); b.Type(y).DType == g.float && b.Shape(y).Len() > 0 {
			loss = b.Add(loss, b.Mean(b.Tanh(y)))
		}
	}
	var weights []graph.ID
	for _, id := range g.pool {
		if leaf, ok := b.Node(id).Op.(graph.Leaf); ok && leaf.Kind == graph.Var && leaf.Type.DType == g.float && leaf.Type.Shape.Len() > 0 {
			weights = append(weights, id)
		}
	}
	p := &Program{Ranks: g.ranks, Steps: 3, State: map[string]bool{}, choice: g.n(3)}
	if len(weights) > 0 {
		g.optimise(loss, weights, p.State)
	}
	b.Output("loss", b.AllReduce(meanOp, "loss", loss)[0])
	var err error
	p.Graph, err = b.Build()
	p.wild = g.wild()
	return p, err
}

// optimise assigns weights what an optimiser makes of their gradients, whose state it
// names.
func (g *grower) optimise(loss graph.ID, weights []graph.ID, state map[string]bool) {
	b := g.b
	grads := b.AllReduce(meanOp, "gradients", b.Grad(loss, weights...)...)
	norm := b.Zeros(graph.T(g.float))
	for _, d := range grads {
		norm = b.Add(norm, b.Mean(b.Square(d)))
	}
	clip := g.n(3)
	if clip == 1 {
		b.Output("norm", norm)
	}
	rule := g.n(4)
	for i, w := range weights {
		d := grads[i]
		if clip == 2 {
			d = b.Div(d, b.Shift(norm, 1))
		}
		var m graph.ID
		if rule < 3 {
			m = g.moment(fmt.Sprint("m", i), b.Type(w), state)
		}
		next := b.Sub(w, b.Scale(d, 0.1))
		switch rule {
		case 0: // momentum, and an average of the weights
			v := b.Add(b.Scale(m, 0.9), d)
			next = b.Sub(w, b.Scale(v, 0.1))
			b.Assign(m, v)
			a := g.moment(fmt.Sprint("a", i), b.Type(w), state)
			b.Assign(a, b.Add(b.Scale(a, 0.9), b.Scale(next, 0.1)))
		case 1: // with a scale of its own
			v := b.Add(b.Scale(m, 0.9), b.Scale(b.Square(d), 0.1))
			next = b.Sub(w, b.Scale(b.Div(d, b.Shift(b.Sqrt(b.Abs(v)), 0.1)), 0.1))
			b.Assign(m, v)
		case 2: // two states that change places
			a := g.moment(fmt.Sprint("a", i), b.Type(w), state)
			b.Assign(m, a)
			b.Assign(a, b.Select(b.Greater(m, d), m, b.Cos(d)))
			next = b.Add(w, b.Tanh(b.Mul(a, d)))
		}
		b.Assign(w, next)
		if g.one(4) {
			sum := b.Sum(next)
			y, name := pick(g.Choices, next, sum, d, b.Cos(w)), "y"
			if y == sum && b.Shape(w).Rank() == 4 {
				name = imageSum
			}
			b.Output(fmt.Sprint(name, i), y)
		}
	}
}

// imageSum is what the name of a sum of new weights with four axes begins with. They may be
// images, which are added up in the order in which they lie; what is gathered of parts lies
// row by row.
const imageSum = "sum"

// moment is a variable of an optimiser's state.
func (g *grower) moment(name string, t graph.Type, state map[string]bool) graph.ID {
	state[name] = g.n(6) > 0
	return g.b.Var(name, t)
}
