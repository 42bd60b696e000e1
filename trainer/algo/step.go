package algo

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// TrainStep is the training step of a method that build makes, on each of world ranks, and
// its variables.
func TrainStep(method string, world int, build func(c *nn.Context)) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, world)
	build(c)
	g, err := c.Commit()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", method, err)
	}
	return g, c.Variables(), nil
}
