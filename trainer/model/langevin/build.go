package langevin

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// builder makes the programs of a plan.
type builder struct {
	Annealed
	System
	vars   []nn.Variable // all of the plan
	moving []nn.Variable // pictures, and latents if they move
	given  []nn.Variable // latents that do not
}

func (b *builder) declare() {
	latents := func(s graph.Shape) []nn.Variable {
		if s.Rank() == 0 {
			return nil
		}
		return []nn.Variable{chain.Var("latents", graph.Type{DType: graph.F32, Shape: s})}
	}
	b.given = latents(b.Given)
	b.moving = append([]nn.Variable{chain.Var("pictures", graph.Type{DType: graph.F32, Shape: b.Pictures})}, latents(b.Moving)...)
	b.vars = slices.Concat(b.given, b.moving)
}

// program begins a transition and assigns what next makes of the moving
// variables.
func (b *builder) program(next func(c *nn.Context, x []graph.ID) []graph.ID) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	x := b.leaves(c, b.moving)
	for i, y := range next(c, x) {
		c.Assign(x[i], y)
	}
	g, err := c.Commit()
	if err != nil {
		return nil, fmt.Errorf("langevin: %w", err)
	}
	return g, nil
}

func (b *builder) leaves(c *nn.Context, vars []nn.Variable) (ids []graph.ID) {
	for _, v := range vars {
		ids = append(ids, c.Var(v.Name, v.Type))
	}
	return ids
}

// noise is ξ for variable i of the moving ones.
func (b *builder) noise(c *nn.Context, i int) graph.ID {
	key := c.Input(chain.InputKey, graph.KeyType)
	return c.Draw(key, graph.Normal, philox.Chain, uint16(i), b.moving[i].Type)
}

// descent is x − rate·∇E(x).
func (b *builder) descent(c *nn.Context, x []graph.ID, rate float64) []graph.ID {
	h := append(b.leaves(c, b.given), x[1:]...)
	if len(h) == 0 {
		h = []graph.ID{0}
	}
	next := make([]graph.ID, len(x))
	for i, slope := range c.Grad(c.Sum(b.Energy(c, x[0], h[0])), x...) {
		next[i] = c.Sub(x[i], c.Scale(slope, rate))
	}
	return next
}

func (b *builder) start() (*graph.Graph, error) {
	return b.program(func(c *nn.Context, x []graph.ID) (next []graph.ID) {
		for i := range x {
			next = append(next, c.Shift(b.noise(c, i), 0.5))
		}
		return next
	})
}

func (b *builder) step() (*graph.Graph, error) {
	return b.program(func(c *nn.Context, x []graph.ID) []graph.ID {
		next := b.descent(c, x, b.Step*b.Step/2)
		spread := c.Scale(c.Sqrt(c.Input(InputTemperature, graph.T(graph.F32))), b.Step)
		for i := range next {
			next[i] = c.Add(next[i], c.Mul(b.noise(c, i), spread))
		}
		return next
	})
}

func (b *builder) finish() (*graph.Graph, error) {
	return b.program(func(c *nn.Context, x []graph.ID) []graph.ID {
		next := b.descent(c, x, b.Denoise*b.Denoise)
		t := b.moving[0].Type
		next[0] = c.Min(c.Max(next[0], c.Zeros(t)), c.Ones(t))
		return next
	})
}
