package optim

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Norm is the length of gradients as one vector, a scalar of the context's type.
func Norm(c *nn.Context, grads []graph.ID) graph.ID {
	squares := c.Zeros(graph.T(c.DType))
	for _, g := range grads {
		squares = c.Add(squares, c.Sum(c.Square(g)))
	}
	return c.Sqrt(squares)
}
