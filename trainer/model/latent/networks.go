package latent

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/nn"
)

// Networks is the deep energy-based latent variable model with its convolutional
// posterior.
type Networks struct{ Net eblvm.Net }

func (m Networks) Shape() graph.Shape {
	return graph.D(m.Net.Channels, m.Net.Size, m.Net.Size)
}

func (m Networks) Declare(c *nn.Context) (theta, phi []nn.Param) {
	return m.Net.Declare(c), m.Net.DeclarePosterior(c)
}

// Features is the one that the residual trunk ends in, (B, d_h).
func (m Networks) Features(c *nn.Context, theta []graph.ID, v graph.ID) []graph.ID {
	var f graph.ID
	c.With(c.Params(eblvm.Scope), theta, func() { f = m.Net.Features(c, v) })
	return []graph.ID{f}
}

func (m Networks) EnergyOf(c *nn.Context, theta, features []graph.ID, h graph.ID) (e graph.ID) {
	c.With(c.Params(eblvm.Scope), theta, func() { e = m.Net.EnergyOf(c, features[0], h) })
	return e
}

func (m Networks) Infer(c *nn.Context, phi []graph.ID, v graph.ID) Belief {
	var q normal
	c.With(c.Params(eblvm.PosteriorScope), phi, func() { q.Gaussian = m.Net.Posterior(c, v) })
	return q
}

// Gap is the Fisher divergence's term at h.
func (m Networks) Gap(c *nn.Context, theta []graph.ID, q Belief, v, h graph.ID) graph.ID {
	return Pull(c, m, theta, q, v, h)
}
