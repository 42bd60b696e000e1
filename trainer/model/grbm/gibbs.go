package grbm

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// DrawHidden is h ~ p(h|v), (B, Hidden), for uniform draws of that shape.
func (p Params) DrawHidden(c *nn.Context, v, uniform graph.ID) graph.ID {
	return Hard(c, p.Logits(c, v), uniform)
}

// DrawVisible is v ~ p(v|h) = N(b + σ²⊙Wh, σ²), (B, Visible), for normal draws of
// that shape.
func (p Params) DrawVisible(c *nn.Context, h, normal graph.ID) graph.ID {
	return c.Add(p.Mean(c, h), c.Mul(c.Exp(p.S), normal))
}

// Gibbs is block Gibbs sampling with named draws: those of half-step i of a
// program, from 0, have Sub i.
type Gibbs struct {
	Params
	Key     graph.ID       // graph.KeyType
	Purpose philox.Purpose // Chain in a sampler, Negative in a training step
}

// Hidden is h ~ p(h|v) as half-step i, (B, Hidden).
func (g Gibbs) Hidden(c *nn.Context, i int, v graph.ID) graph.ID {
	t := graph.T(c.Type(v).DType, c.Batch(v), c.Batch(g.C))
	return g.DrawHidden(c, v, c.Draw(g.Key, graph.Uniform, g.Purpose, uint16(i), t))
}

// Visible is v ~ p(v|h) as half-step i, (B, Visible).
func (g Gibbs) Visible(c *nn.Context, i int, h graph.ID) graph.ID {
	t := graph.T(c.Type(h).DType, c.Batch(h), c.Batch(g.B))
	return g.DrawVisible(c, h, c.Draw(g.Key, graph.Normal, g.Purpose, uint16(i), t))
}

// FromVisible makes k sweeps v → h → v from v, of half-steps 0 … 2k−1.
func (g Gibbs) FromVisible(c *nn.Context, k int, v graph.ID) graph.ID {
	for i := range k {
		v = g.Visible(c, 2*i+1, g.Hidden(c, 2*i, v))
	}
	return v
}

// FromHidden makes k sweeps h → v → h from h, of half-steps 0 … 2k−1, and returns
// the last of both.
func (g Gibbs) FromHidden(c *nn.Context, k int, h graph.ID) (v, last graph.ID) {
	for i := range k {
		v = g.Visible(c, 2*i, h)
		h = g.Hidden(c, 2*i+1, v)
	}
	return v, h
}
