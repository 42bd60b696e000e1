// Package gaussian is the normal distribution with a diagonal covariance that an
// inference net gives for each sample, q(h|v) = N(μ(v), diag σ²(v)): draws of it,
// and its divergence from the prior N(0, I).
//
// It builds graphs and holds no state; a Context belongs to one goroutine.
package gaussian

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Diagonal are the means μ and the log variances log σ² of N samples, both
// (N, d).
type Diagonal struct{ Mean, LogVar graph.ID }

// Draw is h = μ + σ⊙ε, where σ = exp(½ log σ²), for ε ~ N(0, I), (N, d). The
// gradient reaches μ and σ.
func (q Diagonal) Draw(c *nn.Context, eps graph.ID) graph.ID {
	return c.Add(q.Mean, c.Mul(c.Exp(c.Scale(q.LogVar, 0.5)), eps))
}

// KL is KL(q ‖ N(0, I)) of each sample, (N), in nats:
// ½Σ_j(μ_j² + σ_j² − 1 − log σ_j²).
func (q Diagonal) KL(c *nn.Context) graph.ID { return c.Scale(c.Sum(q.Terms(c), 1), 0.5) }

// Terms are μ² + σ² − 1 − log σ², (N, d): twice the summands of KL.
func (q Diagonal) Terms(c *nn.Context) graph.ID {
	return c.Sub(c.Add(c.Square(q.Mean), c.Exp(q.LogVar)), c.Shift(q.LogVar, 1))
}
