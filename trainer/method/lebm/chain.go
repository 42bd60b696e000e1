package lebm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Chain is Langevin dynamics of latents, for a few transitions that need not come to
// rest:
//
//	z ← z − ½s²∇U(z) + T·s·ξ,  ξ ~ N(0, I)
//
// Where U is ½‖z‖² alone, and T = 1, it comes to rest at the variance 1/(1 − s²/4).
type Chain struct {
	Steps int     // K
	Size  float64 // s of each transition, unless they are annealed
	// Annealed takes long steps first: published are those of a sister paper, for
	// latents of sentences [ALGORITHMS.md §4, Text].
	Annealed bool `json:",omitempty"`
	// Temperature is T; 0 stands for 1.
	Temperature float64 `json:",omitempty"`
}

// annealed are the step sizes of 20 transitions; of another number, each lasts longer
// or less long.
var annealed = [...]float64{0.8, 0.7, 0.6, 0.5, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05}

// size is s of transition i, from 0.
func (h Chain) size(i int) float64 {
	if !h.Annealed {
		return h.Size
	}
	return annealed[i*len(annealed)/h.Steps]
}

// temperature is T.
func (h Chain) temperature() float64 {
	if h.Temperature == 0 {
		return 1
	}
	return h.Temperature
}

// run takes z (n, d) through all transitions. slope is ∇U at some latents, and noise
// is ξ of transition i, from 0. The result is constant to differentiation, as are the
// latents that slope is given.
func (h Chain) run(c *nn.Context, z graph.ID, slope func(z graph.ID) graph.ID, noise func(i int) graph.ID) graph.ID {
	for i := range h.Steps {
		z = c.StopGrad(h.next(c, z, slope(z), noise(i), h.size(i)))
	}
	return z
}

// next is z after one transition of size s.
func (h Chain) next(c *nn.Context, z, slope, xi graph.ID, s float64) graph.ID {
	return c.Add(c.Sub(z, c.Scale(slope, s*s/2)), c.Scale(xi, h.temperature()*s))
}

// nextOf is z after transition number done, a scalar that a program is given.
func (h Chain) nextOf(c *nn.Context, z, slope, xi, done graph.ID) graph.ID {
	if !h.Annealed {
		return h.next(c, z, slope, xi, h.Size)
	}
	s := c.Zeros(c.Type(done))
	for i := range h.Steps {
		s = c.Add(s, c.Scale(c.Equal(done, c.Full(c.Type(done), float64(i))), h.size(i)))
	}
	return c.Add(c.Sub(z, c.Mul(slope, c.Scale(c.Square(s), 0.5))), c.Mul(xi, c.Scale(s, h.temperature())))
}
