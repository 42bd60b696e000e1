package lebm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Chain is Langevin dynamics of latents, for a few transitions that need not come to
// rest:
//
//	z ← z − ½s²∇U(z) + sξ,  ξ ~ N(0, I)
//
// Where U is ½‖z‖² alone, it comes to rest at the variance 1/(1 − s²/4).
type Chain struct {
	Steps int     // K
	Size  float64 // s
}

// run takes z (n, d) through all transitions. slope is ∇U at some latents, and noise
// is ξ of transition i, from 0. The result is constant to differentiation, as are the
// latents that slope is given.
func (h Chain) run(c *nn.Context, z graph.ID, slope func(z graph.ID) graph.ID, noise func(i int) graph.ID) graph.ID {
	for i := range h.Steps {
		z = c.StopGrad(h.next(c, z, slope(z), noise(i)))
	}
	return z
}

// next is z after one transition.
func (h Chain) next(c *nn.Context, z, slope, xi graph.ID) graph.ID {
	return c.Add(c.Sub(z, c.Scale(slope, h.Size*h.Size/2)), c.Scale(xi, h.Size))
}
