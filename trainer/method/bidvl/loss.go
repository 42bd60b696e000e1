package bidvl

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/gaussian"
	"ebtrain/trainer/model/nn"
)

// The terms of the losses, most of them scalars: the mean over the batch of a
// sum over the entries of a sample. All losses are minimised.

// separation is the upper loss, of the energies of data and of samples.
func separation(c *nn.Context, kind UpperLoss, data, fake graph.ID) graph.ID {
	if kind == Hinge {
		above := c.Mean(c.Relu(c.Shift(data, 1)))
		below := c.Mean(c.Relu(c.Shift(c.Neg(fake), 1)))
		return c.Add(above, below)
	}
	return c.Sub(c.Mean(data), c.Mean(fake))
}

// meanSquare is ⟨‖x − y‖²⟩, the squares added over all but the first axis.
func meanSquare(c *nn.Context, x, y graph.ID) graph.ID {
	n := c.Batch(x)
	return c.Scale(c.Sum(c.Square(c.Sub(x, y))), 1/float64(n))
}

// klPrior is ⟨KL(N(μ, diag σ²) ‖ N(0, I))⟩ = ⟨½Σ_j(μ_j² + σ_j² − 1 − log σ_j²)⟩.
func klPrior(c *nn.Context, mean, logVar graph.ID) graph.ID {
	n := c.Batch(mean)
	return c.Scale(c.Sum(gaussian.Diagonal{Mean: mean, LogVar: logVar}.Terms(c)), 0.5/float64(n))
}

// entropy is ⟨½Σ_j log σ_j²⟩, that of N(μ, diag σ²) less its constant.
func entropy(c *nn.Context, logVar graph.ID) graph.ID {
	n := c.Batch(logVar)
	return c.Scale(c.Sum(logVar), 0.5/float64(n))
}

// reparameterise is h = μ + σ⊙ε.
func reparameterise(c *nn.Context, mean, logVar, eps graph.ID) graph.ID {
	return gaussian.Diagonal{Mean: mean, LogVar: logVar}.Draw(c, eps)
}

// ratio is r(v)/r′ of each sample, (N), from its energy, (N, 1). ⟨E⟩ is over
// the global batch.
func ratio(c *nn.Context, kind Ratio, energy graph.ID) graph.ID {
	e := c.Reshape(c.StopGrad(energy), graph.D(c.Batch(energy)))
	mean := c.Mean(e)
	if c.World > 1 {
		mean = c.AllReduce(collective.Mean, "ratio", mean)[0]
	}
	s := c.Shape(e)
	gap := c.Sub(c.BroadcastTo(mean, s), e)
	if kind == SigmoidRatio {
		return c.Sigmoid(gap)
	}
	t := c.Type(e)
	return c.Min(c.Max(c.Exp(gap), c.Full(t, 0.8)), c.Full(t, 1.2))
}

// weighed is ⟨w·(‖x − y‖² + KL(N(μ, diag σ²) ‖ N(0, I)))⟩ for weights w, (N).
func weighed(c *nn.Context, w, x, y, mean, logVar graph.ID) graph.ID {
	recon := c.Sum(c.Square(c.Sub(x, y)), 1, 2, 3)
	kl := gaussian.Diagonal{Mean: mean, LogVar: logVar}.KL(c)
	return c.Mean(c.Mul(w, c.Add(recon, kl)))
}
