package eblvm

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Gaussian is q(h|v) at some v: independent normal latents with these means and
// logarithms of standard deviations, both (B, Latent). log std is not bounded.
type Gaussian struct{ Mean, LogStd graph.ID }

// Posterior is q(h|v): three convolutions that halve the picture, each followed
// by a leaky ReLU of slope 0.2, and two linear heads.
func (n Net) Posterior(c *nn.Context, v graph.ID) (q Gaussian) {
	c.Scope(PosteriorScope, func() {
		x, in := v, n.Channels
		for i, times := range []int{1, 2, 4} {
			out := times * n.PosteriorWidth
			conv := nn.Conv2d{Name: fmt.Sprintf("conv%d", i+1), In: in, Out: out, Kernel: 3, Stride: 2, Pad: 1}
			x, in = c.LeakyRelu(conv.Apply(c, x), 0.2), out
		}
		flat := n.Size / 8 * (n.Size / 8) * in
		x = c.Reshape(x, graph.D(c.Batch(v), flat))
		q.Mean = nn.Linear{Name: "mean", In: flat, Out: n.Latent}.Apply(c, x)
		q.LogStd = nn.Linear{Name: "logstd", In: flat, Out: n.Latent}.Apply(c, x)
	})
	return q
}

// DeclarePosterior declares the variables φ of the posterior.
func (n Net) DeclarePosterior(c *nn.Context) []nn.Param {
	n.Posterior(c, n.nothing(c))
	return c.Params(PosteriorScope)
}

// Sample is h = mean + exp(log std)·ε, for standard normal ε (B, Latent).
func (q Gaussian) Sample(c *nn.Context, eps graph.ID) graph.ID {
	return c.Add(q.Mean, c.Mul(c.Exp(q.LogStd), eps))
}

// LogProb is log q(h|v), (B).
func (q Gaussian) LogProb(c *nn.Context, h graph.ID) graph.ID {
	z := c.Mul(c.Sub(h, q.Mean), c.Exp(c.Neg(q.LogStd)))
	each := c.Add(c.Scale(c.Square(z), 0.5), c.Shift(q.LogStd, math.Log(2*math.Pi)/2))
	return c.Neg(c.Sum(each, 1))
}
