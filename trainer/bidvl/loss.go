package bidvl

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/nn"
)

// The terms of the losses. Each is a scalar: the mean over the batch of a sum
// over the entries of a sample. All losses are minimised.

// meanEnergy is ⟨E(v)⟩.
func meanEnergy(c *nn.Context, net network, v graph.ID) graph.ID {
	_, e := net.Energy(c, v)
	return c.Mean(e)
}

// meanSquare is ⟨‖x − y‖²⟩, the squares added over all but the first axis.
func meanSquare(c *nn.Context, x, y graph.ID) graph.ID {
	n := c.Batch(x)
	return c.Scale(c.Sum(c.Square(c.Sub(x, y))), 1/float64(n))
}

// klPrior is ⟨KL(N(μ, diag σ²) ‖ N(0, I))⟩ = ⟨½Σ_j(μ_j² + σ_j² − 1 − log σ_j²)⟩.
func klPrior(c *nn.Context, mean, logVar graph.ID) graph.ID {
	n := c.Batch(mean)
	inner := c.Sub(c.Add(c.Square(mean), c.Exp(logVar)), c.Shift(logVar, 1))
	return c.Scale(c.Sum(inner), 0.5/float64(n))
}

// reparameterise is h = μ + σ⊙ε, where σ = exp(½ log σ²).
func reparameterise(c *nn.Context, mean, logVar, eps graph.ID) graph.ID {
	return c.Add(mean, c.Mul(c.Exp(c.Scale(logVar, 0.5)), eps))
}
