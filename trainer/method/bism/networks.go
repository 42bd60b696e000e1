package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/nn"
)

// eblvm are the sizes of the deep model's networks.
func (n Net) eblvm() eblvm.Net {
	return eblvm.Net{Trunk: eblvm.Trunk{Size: n.H, Channels: n.C, Width: n.Width, Blocks: n.Depth}, Latent: n.Hidden, PosteriorWidth: n.PosteriorWidth}
}

// networks is the deep energy-based latent variable model with its convolutional
// posterior.
type networks struct{ net eblvm.Net }

func newNetworks(n Net) networks { return networks{n.eblvm()} }

func (m networks) shape() graph.Shape {
	return graph.D(m.net.Channels, m.net.Size, m.net.Size)
}

func (m networks) declare(c *nn.Context) (theta, phi []nn.Param) {
	return m.net.Declare(c), m.net.DeclarePosterior(c)
}

func (m networks) energy(c *nn.Context, theta []graph.ID, v, h graph.ID) (e graph.ID) {
	c.With(c.Params(eblvm.Scope), theta, func() { e = m.net.Energy(c, v, h) })
	return e
}

func (m networks) infer(c *nn.Context, phi []graph.ID, v graph.ID) belief {
	var q normal
	c.With(c.Params(eblvm.PosteriorScope), phi, func() { q.Gaussian = m.net.Posterior(c, v) })
	return q
}

// gap is the Fisher divergence's term at h.
func (m networks) gap(c *nn.Context, theta []graph.ID, q belief, v, h graph.ID) graph.ID {
	return pull(c, m, theta, q, v, h)
}
