package grbm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// LogWeights are −E(v,h) − log q(h|v) for h (B, L, Hidden), 0 or 1, drawn from q
// at v (B, Visible), (B, L): the mean over L of their exponentials estimates
// exp(−F(v)) without bias. With l and λ the logits of p(h|v) and q(h|v),
//
//	−Σᵢ(vᵢ−bᵢ)²/(2σᵢ²) + Σⱼ hⱼ(lⱼ−λⱼ) + softplus(λⱼ)
func (p Params) LogWeights(c *nn.Context, q Posterior, v, h graph.ID) graph.ID {
	n, hidden := c.Batch(v), c.Batch(p.C)
	logits := q.Logits(c, v)
	slope := c.Reshape(c.Sub(p.Logits(c, v), logits), graph.D(n, 1, hidden))
	level := c.Sub(c.Sum(c.Softplus(logits), 1), p.Square(c, v))
	return c.Add(c.Sum(c.Mul(h, slope), 2), c.Reshape(level, graph.D(n, 1)))
}
