package bism

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

func (q bernoulli) dist() graph.Dist { return graph.Uniform }

func (q bernoulli) sample(c *nn.Context, uniform graph.ID) graph.ID {
	return grbm.Soft(c, q.logits, grbm.Logistic(c, uniform), q.temperature)
}

func (q bernoulli) logProb(c *nn.Context, h graph.ID) graph.ID { return grbm.LogProb(c, q.logits, h) }

func (q bernoulli) mean(c *nn.Context) graph.ID { return c.Sigmoid(q.logits) }

// normal are independent Gaussian units.
type normal struct{ eblvm.Gaussian }

func (q normal) dist() graph.Dist { return graph.Normal }

func (q normal) sample(c *nn.Context, eps graph.ID) graph.ID { return q.Sample(c, eps) }

func (q normal) logProb(c *nn.Context, h graph.ID) graph.ID { return q.LogProb(c, h) }

func (q normal) mean(*nn.Context) graph.ID { return q.Mean }
