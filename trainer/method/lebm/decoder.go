package lebm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// decoder is what the model asks of its generator, whatever that makes: G, and how
// far its samples are from others. Its weights are named generator.… .
type decoder interface {
	// loss is what the weights descend, for each sample of x, (n).
	loss(c *nn.Context, x, z graph.ID) graph.ID
	// precision times the loss is −log p(x|z), but for a constant.
	precision() float64
}

// Names of the networks, which begin those of their variables.
const (
	generatorNet = "generator"
	energyNet    = "energy"
)
