// Package grbm is the Gaussian restricted Boltzmann machine, as several methods
// train it [ALGORITHMS.md §2.2]: its energy, what can be computed of its
// marginal, its sampler, its likelihood, and an approximate posterior.
//
// With v (B, Visible), h (B, Hidden) and σ = exp(s), one for each visible unit:
//
//	E(v,h) = Σᵢ (vᵢ−bᵢ)²/(2σᵢ²) − cᵀh − vᵀWh,  h in {0, 1}, or soft
//
// W is not divided by σ: it is the paper's W/σ.
//
// Values of this package are plain and may be used from any goroutine.
package grbm

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Scope is the scope of the model's variables.
const Scope = "model"

// Size is the numbers of units.
type Size struct{ Visible, Hidden int }

// Validate says what is wrong with the sizes.
func (z Size) Validate() error {
	if z.Visible < 1 || z.Hidden < 1 {
		return fmt.Errorf("grbm: want at least one visible and one hidden unit, got %d and %d", z.Visible, z.Hidden)
	}
	return nil
}

// Params are the parameters θ, as values of a graph.
type Params struct {
	S graph.ID // log σ (Visible)
	W graph.ID // (Visible, Hidden)
	B graph.ID // b (Visible)
	C graph.ID // c (Hidden)
}

// Declare declares the variables model.s, .w, .b, .c: s = 0, the others uniform
// on ±1/√Hidden.
func (z Size) Declare(c *nn.Context) []nn.Param {
	c.Scope(Scope, func() {
		bound := nn.FanIn(z.Hidden)
		c.Weight("s", graph.D(z.Visible), nn.Zeros)
		c.Weight("w", graph.D(z.Visible, z.Hidden), bound)
		c.Weight("b", graph.D(z.Visible), bound)
		c.Weight("c", graph.D(z.Hidden), bound)
	})
	return c.Params(Scope)
}

// Of are the parameters whose values are ids, in the order of Declare.
func Of(ids []graph.ID) Params { return Params{ids[0], ids[1], ids[2], ids[3]} }

// precision is 1/σ², (Visible).
func (p Params) precision(c *nn.Context) graph.ID { return c.Exp(c.Scale(p.S, -2)) }

// Square is Σᵢ (vᵢ−bᵢ)²/(2σᵢ²), (B).
func (p Params) Square(c *nn.Context, v graph.ID) graph.ID {
	return c.Sum(c.Mul(c.Square(c.Sub(v, p.B)), c.Scale(p.precision(c), 0.5)), 1)
}

// Logits are those of p(h = 1|v), c + Wᵀv, (B, Hidden).
func (p Params) Logits(c *nn.Context, v graph.ID) graph.ID {
	return c.Add(c.MatMul(v, p.W, false, false), p.C)
}

// Mean is the mean of p(v|h), b + σ²⊙Wh, (B, Visible).
func (p Params) Mean(c *nn.Context, h graph.ID) graph.ID {
	return c.Add(c.Mul(c.MatMul(h, p.W, false, true), c.Exp(c.Scale(p.S, 2))), p.B)
}

// Energy is E(v,h), (B).
func (p Params) Energy(c *nn.Context, v, h graph.ID) graph.ID {
	return c.Sub(p.Square(c, v), c.Sum(c.Mul(h, p.Logits(c, v)), 1))
}

// FreeEnergy is F(v) = −log Σ_h exp(−E(v,h)), (B).
func (p Params) FreeEnergy(c *nn.Context, v graph.ID) graph.ID {
	return c.Sub(p.Square(c, v), c.Sum(c.Softplus(p.Logits(c, v)), 1))
}

// Score is the marginal score ∇_v log p(v) = −(v−b)/σ² + W·sigmoid(c + Wᵀv),
// (B, Visible).
func (p Params) Score(c *nn.Context, v graph.ID) graph.ID {
	pull := c.Mul(c.Sub(v, p.B), p.precision(c))
	return c.Sub(c.MatMul(c.Sigmoid(p.Logits(c, v)), p.W, false, true), pull)
}

// FisherLoss is each sample's ½‖∇log p‖² + tr ∇²log p, the Fisher divergence to
// the data but for the data's constant, with the trace in closed form, (B):
//
//	½‖s‖² − Σᵢ1/σᵢ² + Σⱼpⱼ(1−pⱼ)ΣᵢWᵢⱼ²,  p = sigmoid(c + Wᵀv)
func (p Params) FisherLoss(c *nn.Context, v graph.ID) graph.ID {
	half := c.Scale(c.Sum(c.Square(p.Score(c, v)), 1), 0.5)
	prob := c.Sigmoid(p.Logits(c, v))
	spread := c.Mul(prob, c.Shift(c.Neg(prob), 1))
	curve := c.Sum(c.Mul(spread, c.Sum(c.Square(p.W), 0)), 1)
	return c.Sub(c.Add(half, curve), c.Sum(p.precision(c)))
}
