package fisher

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// criticScope is the scope of the critic's variables.
const criticScope = "critic"

// layers are those of the critic, all from d values to d, with ELU between.
const layers = 3

// critic is f, as values of a graph: weights (d, d) and biases (d).
type critic struct{ weight, bias [layers]graph.ID }

// declareCritic declares critic.1.weight, .bias, … with PyTorch's initial values.
func declareCritic(c *nn.Context, d int) critic {
	var f critic
	c.Scope(criticScope, func() {
		for i := range layers {
			c.Scope(fmt.Sprint(i+1), func() {
				f.weight[i] = c.Weight("weight", graph.D(d, d), nn.FanIn(d))
				f.bias[i] = c.Weight("bias", graph.D(d), nn.FanIn(d))
			})
		}
	})
	return f
}

// layer is what layer i makes of x before any ELU, (B, d).
func (f critic) layer(c *nn.Context, i int, x graph.ID) graph.ID {
	return c.Add(c.MatMul(x, f.weight[i], false, true), f.bias[i])
}

// at is f(v), (B, d).
func (f critic) at(c *nn.Context, v graph.ID) graph.ID {
	x := f.layer(c, 0, v)
	for i := 1; i < layers; i++ {
		x = f.layer(c, i, c.Elu(x, 1))
	}
	return x
}

// trace is tr ∂f/∂v, (B): with D₁ and D₂ the slopes of the two ELUs, diagonal,
//
//	tr W₃D₂W₂D₁W₁ = Σₐᵦ (D₂)ₐ (W₂)ₐᵦ(W₁W₃)ᵦₐ (D₁)ᵦ
func (f critic) trace(c *nn.Context, v graph.ID) graph.ID {
	slope := func(x graph.ID) graph.ID { return c.Pushforward(c.Elu(x, 1), x, c.Ones(c.Type(x))) }
	x1 := f.layer(c, 0, v)
	x2 := f.layer(c, 1, c.Elu(x1, 1))
	ends := c.Transpose(c.MatMul(f.weight[0], f.weight[2], false, false), 1, 0)
	inner := c.MatMul(slope(x1), c.Mul(f.weight[1], ends), false, true)
	return c.Sum(c.Mul(slope(x2), inner), 1)
}

// objective is sᵀf + trace − ½‖f‖² of each sample, (B).
func objective(c *nn.Context, s, f, trace graph.ID) graph.ID {
	half := c.Sub(s, c.Scale(f, 0.5))
	return c.Add(c.Sum(c.Mul(half, f), 1), trace)
}
