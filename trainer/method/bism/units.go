package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

// units is the Gaussian restricted Boltzmann machine with a linear posterior.
type units struct {
	size        grbm.Size
	temperature float64
}

func newUnits(n Net, temperature float64) units {
	return units{grbm.Size{Visible: n.C * n.H * n.W, Hidden: n.Hidden}, temperature}
}

func (m units) shape() graph.Shape { return graph.D(m.size.Visible) }

func (m units) declare(c *nn.Context) (theta, phi []nn.Param) {
	return m.size.Declare(c), m.size.DeclarePosterior(c)
}

func (m units) energy(c *nn.Context, theta []graph.ID, v, h graph.ID) graph.ID {
	return grbm.Of(theta).Energy(c, v, h)
}

func (m units) infer(c *nn.Context, phi []graph.ID, v graph.ID) belief {
	return bernoulli{grbm.PosteriorOf(phi).Logits(c, v), m.temperature}
}

// gap is KL(q(h|v) ‖ p(h|v)), exactly: both are independent units, with logits
// l and k and q's means p, and it is Σⱼ pⱼ(lⱼ−kⱼ) − softplus(lⱼ) + softplus(kⱼ).
func (m units) gap(c *nn.Context, theta []graph.ID, q belief, v, _ graph.ID) graph.ID {
	l := q.(bernoulli).logits
	k := grbm.Of(theta).Logits(c, v)
	distance := c.Mul(q.mean(c), c.Sub(l, k))
	return c.Sum(c.Add(distance, c.Sub(c.Softplus(k), c.Softplus(l))), 1)
}
