package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// pair is a model and its approximate posterior. Their parameters are lists of
// values, so that both levels can compute with stepped ones.
type pair interface {
	// shape is that of one sample as the model takes it.
	shape() graph.Shape
	// declare declares the variables θ and φ.
	declare(c *nn.Context) (theta, phi []nn.Param)
	// energy is E(v,h), (B), for v (B, shape) and h (B, d_h).
	energy(c *nn.Context, theta []graph.ID, v, h graph.ID) graph.ID
	// infer is q(h|v).
	infer(c *nn.Context, phi []graph.ID, v graph.ID) belief
	// gap is each sample's divergence of q from p(h|v), (B), as far as it can be
	// computed; h is a sample of q.
	gap(c *nn.Context, theta []graph.ID, q belief, v, h graph.ID) graph.ID
}

// belief is q(h|v) at some v.
type belief interface {
	// dist is the distribution that sample wants numbers of.
	dist() graph.Dist
	// sample is h (B, d_h), differentiable in φ, from numbers (B, d_h).
	sample(c *nn.Context, numbers graph.ID) graph.ID
	// logProb is log q(h|v), (B).
	logProb(c *nn.Context, h graph.ID) graph.ID
	// mean is that of q, (B, d_h).
	mean(c *nn.Context) graph.ID
}

// logRatio is −E(v,h) − log q(h|v), (B), which stands for log p(v).
func logRatio(c *nn.Context, m pair, theta []graph.ID, q belief, v, h graph.ID) graph.ID {
	return c.Neg(c.Add(m.energy(c, theta, v, h), q.logProb(c, h)))
}

// pull is ½‖∇_h(−E(v,h) − log q(h|v))‖² of each sample, (B): the term of the
// Fisher divergence of q from p(h|v) at h ~ q.
func pull(c *nn.Context, m pair, theta []graph.ID, q belief, v, h graph.ID) graph.ID {
	return c.Scale(c.Sum(c.Square(c.Grad(logRatio(c, m, theta, q, v, h), h)[0]), 1), 0.5)
}
