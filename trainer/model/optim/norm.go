package optim

import (
	"ebtrain/ddp"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Norm is the length of gradients as one vector, a scalar of the context's type, in which
// squares are added: in float32 it is infinite beyond 1.8e19. ClipNorm has that of any.
func Norm(c *nn.Context, grads []graph.ID) graph.ID {
	squares := c.Zeros(graph.T(c.DType))
	for _, g := range grads {
		squares = c.Add(squares, c.Sum(c.Square(g)))
	}
	return c.Sqrt(squares)
}

// Averaged is the gradient of loss in ps, averaged over ranks under a name, and its length.
func Averaged(c *nn.Context, name string, loss graph.ID, ps []nn.Param) (grads []graph.ID, norm graph.ID) {
	grads = ddp.Sync(c.Builder, c.World, name, c.Grad(loss, nn.IDs(ps)...))
	return grads, Norm(c, grads)
}
