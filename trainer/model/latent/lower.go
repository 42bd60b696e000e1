package latent

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Divergence is what the lower level minimises.
type Divergence string

const (
	KL     Divergence = "kl"     // KL(q(h|v) ‖ p(h|v))
	Fisher Divergence = "fisher" // ½E_q‖∇_h log q(h|v)/p(h|v)‖²
)

// Divergences are all of them.
func Divergences() []Divergence { return []Divergence{KL, Fisher} }

// Lower is G(θ, φ) of each sample, (B), at h ~ q(h|v) from numbers, through which
// gradients flow; none flow through v. But for a constant it is
//
//	KL:     E(v,h) + log q(h|v)
//	Fisher: ½‖∇_h(−E(v,h) − log q(h|v))‖²
func (d Divergence) Lower(c *nn.Context, m Model, theta []graph.ID, q Belief, v, h graph.ID) graph.ID {
	if d == KL {
		return c.Neg(LogRatio(c, m, theta, q, v, h))
	}
	return Pull(c, m, theta, q, v, h)
}

// Pull is ½‖∇_h(−E(v,h) − log q(h|v))‖² of each sample, (B): the term of the
// Fisher divergence of q from p(h|v) at h ~ q.
func Pull(c *nn.Context, m Model, theta []graph.ID, q Belief, v, h graph.ID) graph.ID {
	return c.Scale(c.Sum(c.Square(c.Grad(LogRatio(c, m, theta, q, v, h), h)[0]), 1), 0.5)
}
