package eblvm

import (
	"errors"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Net are the sizes of the latent variable model and its posterior.
type Net struct {
	Trunk
	Latent int // d_h; 20, 50 or 100 in the paper
	// Posterior has PosteriorWidth, twice and four times as many channels; 64 in
	// the paper.
	PosteriorWidth int
}

// Validate says what is wrong with the sizes.
func (n Net) Validate() error {
	err := n.Trunk.Validate()
	if n.Latent < 1 {
		err = errors.Join(err, fmt.Errorf("want at least one latent, got %d", n.Latent))
	}
	if n.PosteriorWidth < 1 {
		err = errors.Join(err, fmt.Errorf("want a width of the posterior of at least 1 (64 in the paper), got %d", n.PosteriorWidth))
	}
	return err
}

// Features are f, what E knows of v, (B, Latent). Energies of several h at one v
// need it once.
func (n Net) Features(c *nn.Context, v graph.ID) (f graph.ID) {
	c.Scope(Scope, func() {
		f = nn.Linear{Name: "features", In: n.flat(), Out: n.Latent}.Apply(c, n.features(c, v))
	})
	return f
}

// EnergyOf is E(v,h) of the features f of v and of h, (B).
func (n Net) EnergyOf(c *nn.Context, f, h graph.ID) (e graph.ID) {
	c.Scope(Scope, func() {
		both := c.Concat(1, c.Add(f, h), h)
		x := nn.Linear{Name: "head", In: 2 * n.Latent, Out: n.flat() / 2}.Apply(c, both)
		e = c.Sum(c.Square(c.Elu(x, 1)), 1)
	})
	return e
}

// Energy is E(v,h), (B).
func (n Net) Energy(c *nn.Context, v, h graph.ID) graph.ID { return n.EnergyOf(c, n.Features(c, v), h) }

// Declare declares the variables θ of the energy.
func (n Net) Declare(c *nn.Context) []nn.Param {
	n.Energy(c, n.nothing(c), c.Zeros(graph.T(c.DType, 1, n.Latent)))
	return c.Params(Scope)
}
