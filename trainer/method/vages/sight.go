package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

// Places in a step: those of the upper level's three sets of particles, the first of
// which is also that of what it sees, and those of the steps of the lower level.
const (
	scorePlace = iota
	meanPlace
	covariancePlace
	lowerPlace
)

// drawer draws what both levels see.
type drawer struct {
	*nn.Context
	cfg   Config
	model latent.Model
	data  graph.ID // (B, shape)
	key   graph.ID
	theta []graph.ID
	// levels are the noise levels of MDSM, (B).
	levels graph.ID
	// odd says that only samples in odd slots of the batch are looked at.
	odd bool
}

// draw is random numbers, named by purpose and place, of a type whose first axis is
// samples.
func (d drawer) draw(p philox.Purpose, place int, dist graph.Dist, t graph.Type) graph.ID {
	if d.odd {
		t.Shape = t.Shape.With(0, 2*t.Shape.At(0))
	}
	x := d.Draw(d.key, dist, p, uint16(place), t)
	if d.odd {
		return d.oddRows(x)
	}
	return x
}

// evenRows and oddRows are every other sample.
func (d drawer) evenRows(x graph.ID) graph.ID { return d.Slice(x, 0, 0, d.Batch(x), 2) }
func (d drawer) oddRows(x graph.ID) graph.ID  { return d.Slice(x, 0, 1, d.Batch(x), 2) }

// seen is v as both levels see it: for DSM and MDSM perturbed.
type seen struct {
	v     graph.ID // (B, shape), constant
	eps   graph.ID // its noise, where it is perturbed
	sigma graph.ID // MDSM: its noise level, (B)
}

// see is v at a place of the step.
func (d drawer) see(place int) seen {
	if d.cfg.Objective == SSM || d.cfg.Objective == KSD {
		return seen{v: d.StopGrad(d.data)}
	}
	s := seen{eps: d.draw(philox.Perturb, place, graph.Normal, d.Type(d.data))}
	if d.cfg.Objective == MDSM {
		s.sigma = d.levels
	}
	s.v = d.StopGrad(d.cfg.Perturbed(d.Context, d.cfg.Objective, d.data, s.eps, s.sigma))
	return s
}
