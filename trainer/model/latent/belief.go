package latent

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

// bernoulli are independent Bernoulli units, which are sampled softly: by
// Gumbel-softmax at a temperature.
type bernoulli struct {
	logits      graph.ID
	temperature float64
}

func (q bernoulli) Dist() graph.Dist { return graph.Uniform }

func (q bernoulli) Sample(c *nn.Context, uniform graph.ID) graph.ID {
	return grbm.Soft(c, q.logits, grbm.Logistic(c, uniform), q.temperature)
}

func (q bernoulli) LogProb(c *nn.Context, h graph.ID) graph.ID { return grbm.LogProb(c, q.logits, h) }

func (q bernoulli) Mean(c *nn.Context) graph.ID { return c.Sigmoid(q.logits) }

func (q bernoulli) Repeat(c *nn.Context, n int) Belief {
	return bernoulli{Repeat(c, q.logits, n), q.temperature}
}

// normal are independent Gaussian units.
type normal struct{ eblvm.Gaussian }

func (q normal) Dist() graph.Dist { return graph.Normal }

func (q normal) Sample(c *nn.Context, eps graph.ID) graph.ID { return q.Gaussian.Sample(c, eps) }

func (q normal) LogProb(c *nn.Context, h graph.ID) graph.ID { return q.Gaussian.LogProb(c, h) }

func (q normal) Mean(*nn.Context) graph.ID { return q.Gaussian.Mean }

func (q normal) Repeat(c *nn.Context, n int) Belief {
	return normal{eblvm.Gaussian{Mean: Repeat(c, q.Gaussian.Mean, n), LogStd: Repeat(c, q.LogStd, n)}}
}
