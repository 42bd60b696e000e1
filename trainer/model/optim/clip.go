package optim

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// ClipNorm scales the gradients by min(1, limit/norm), where norm is the length
// of all of them as one vector. It adds squares in float64, so no gradient that
// is finite in float32 overflows. Gradients of length 0 stay 0; one that is not
// a number makes norm and all of the clipped NaN. The norm is a scalar of the
// context's type.
func ClipNorm(c *nn.Context, grads []graph.ID, limit float64) (clipped []graph.ID, norm graph.ID) {
	if !(limit > 0) || !finite(limit) {
		c.Fail(fmt.Errorf("want a limit of the gradients' norm above 0, got %v", limit))
		return grads, 0
	}
	wide := graph.T(graph.F64)
	sum := c.Zeros(wide)
	for _, g := range grads {
		sum = c.Add(sum, c.Sum(c.Square(c.Cast(g, graph.F64))))
	}
	length := c.Sqrt(sum)
	most := c.Full(wide, limit)
	factor := c.Cast(c.Div(most, c.Max(length, most)), c.DType) // 1 where the norm is below the limit
	for _, g := range grads {
		clipped = append(clipped, c.Mul(g, factor))
	}
	return clipped, c.Cast(length, c.DType)
}
