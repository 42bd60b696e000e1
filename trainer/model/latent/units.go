package latent

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

// Units is the Gaussian restricted Boltzmann machine with a linear posterior.
type Units struct {
	Size        grbm.Size
	Temperature float64 // of Gumbel-softmax samples
}

func (m Units) Shape() graph.Shape { return graph.D(m.Size.Visible) }

func (m Units) Declare(c *nn.Context) (theta, phi []nn.Param) {
	return m.Size.Declare(c), m.Size.DeclarePosterior(c)
}

// Features are the part of E that h has no part in, (B), and the logits of
// p(h = 1|v), (B, d_h).
func (m Units) Features(c *nn.Context, theta []graph.ID, v graph.ID) []graph.ID {
	p := grbm.Of(theta)
	return []graph.ID{p.Square(c, v), p.Logits(c, v)}
}

func (m Units) EnergyOf(c *nn.Context, _, features []graph.ID, h graph.ID) graph.ID {
	return c.Sub(features[0], c.Sum(c.Mul(h, features[1]), 1))
}

func (m Units) Infer(c *nn.Context, phi []graph.ID, v graph.ID) Belief {
	return bernoulli{grbm.PosteriorOf(phi).Logits(c, v), m.Temperature}
}

// Gap is KL(q(h|v) ‖ p(h|v)), exactly: both are independent units, with logits
// l and k and q's means p, and it is Σⱼ pⱼ(lⱼ−kⱼ) − softplus(lⱼ) + softplus(kⱼ).
func (m Units) Gap(c *nn.Context, theta []graph.ID, q Belief, v, _ graph.ID) graph.ID {
	l := q.(bernoulli).logits
	k := grbm.Of(theta).Logits(c, v)
	distance := c.Mul(q.Mean(c), c.Sub(l, k))
	return c.Sum(c.Add(distance, c.Sub(c.Softplus(k), c.Softplus(l))), 1)
}
