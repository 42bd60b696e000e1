package grbm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// PosteriorScope is the scope of the posterior's variables.
const PosteriorScope = "posterior"

// Posterior are the parameters φ of q(h|v), one linear layer whose results are
// the logits of independent Bernoulli units.
type Posterior struct {
	Weight graph.ID // (Hidden, Visible)
	Bias   graph.ID // (Hidden)
}

// DeclarePosterior declares the variables posterior.weight and .bias, uniform on
// ±1/√Visible.
func (z Size) DeclarePosterior(c *nn.Context) []nn.Param {
	c.Scope(PosteriorScope, func() {
		c.Weight("weight", graph.D(z.Hidden, z.Visible), nn.FanIn(z.Visible))
		c.Weight("bias", graph.D(z.Hidden), nn.FanIn(z.Visible))
	})
	return c.Params(PosteriorScope)
}

// PosteriorOf are the parameters whose values are ids, in the order of
// DeclarePosterior.
func PosteriorOf(ids []graph.ID) Posterior { return Posterior{ids[0], ids[1]} }

// Logits are those of q(h = 1|v), (B, Hidden).
func (q Posterior) Logits(c *nn.Context, v graph.ID) graph.ID {
	return c.Add(c.MatMul(v, q.Weight, false, true), q.Bias)
}

// LogProb is log q(h|v) = Σⱼ hⱼlⱼ − softplus(lⱼ) for logits l, (B). h may be soft.
func LogProb(c *nn.Context, logits, h graph.ID) graph.ID {
	return c.Sum(c.Sub(c.Mul(h, logits), c.Softplus(logits)), 1)
}

// Logistic is the difference of two Gumbel draws, from uniform ones of the same
// shape.
func Logistic(c *nn.Context, uniform graph.ID) graph.ID {
	return c.Sub(c.Log(uniform), c.Log(c.Shift(c.Neg(uniform), 1)))
}

// Soft are Gumbel-softmax samples of Bernoulli units, relaxed to (0, 1):
// sigmoid((l + logistic)/temperature) for logits l.
func Soft(c *nn.Context, logits, logistic graph.ID, temperature float64) graph.ID {
	return c.Sigmoid(c.Scale(c.Add(logits, logistic), 1/temperature))
}

// Hard are samples of Bernoulli units: 1 where a uniform draw is below
// sigmoid(logits), else 0.
func Hard(c *nn.Context, logits, uniform graph.ID) graph.ID {
	return c.Greater(c.Sigmoid(logits), uniform)
}
