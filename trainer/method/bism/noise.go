package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

// draws gives random numbers of a step: independent ones for each purpose and
// place in the step.
type draws func(p philox.Purpose, place int, d graph.Dist, t graph.Type) graph.ID

// named are draws named by a key.
func named(c *nn.Context, key graph.ID) draws {
	return func(p philox.Purpose, place int, d graph.Dist, t graph.Type) graph.ID {
		return c.Draw(key, d, p, uint16(place), t)
	}
}

// Places in a step: that of the upper level, then those of the inner steps.
const (
	upperPlace = 0
	innerPlace = 1
)

// drawer draws what both levels see.
type drawer struct {
	*nn.Context
	cfg   Config
	model latent.Model
	data  graph.ID // (B, shape)
	draw  draws
	// levels are the noise levels of MDSM, (B).
	levels graph.ID
}

// place is where the draws of a step's place are found.
func (d drawer) place(p int) int {
	if d.cfg.SameNoise {
		return upperPlace
	}
	return p
}

// seen is v as both levels see it: for DSM and MDSM perturbed.
type seen struct {
	v     graph.ID // (B, shape)
	eps   graph.ID // its noise, where it is perturbed
	sigma graph.ID // MDSM: its noise level, (B)
}

// see is v at a place of the step.
func (d drawer) see(place int) seen {
	if d.cfg.Objective == SSM {
		return seen{v: d.data}
	}
	s := seen{eps: d.draw(philox.Perturb, d.place(place), graph.Normal, d.Type(d.data))}
	if d.cfg.Objective == MDSM {
		s.sigma = d.levels
	}
	s.v = d.cfg.Perturbed(d.Context, d.cfg.Objective, d.data, s.eps, s.sigma)
	return s
}

// hidden is h ~ q(h|v) at a place of the step.
func (d drawer) hidden(q latent.Belief, place int) graph.ID {
	t := graph.T(d.DType, d.Batch(d.data), d.cfg.Net.Hidden)
	return q.Sample(d.Context, d.draw(philox.Hidden, d.place(place), q.Dist(), t))
}
