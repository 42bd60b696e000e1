package vages

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
)

// lower is G(θ, φ) on this rank's samples, with the draws of a place, a scalar: the
// mean divergence of q(h|v) from p(h|v), with MDSM's Fisher divergence each divided
// by its σ.
func (s *step) lower(phi []graph.ID, place int) graph.ID {
	o := s.see(place)
	q := s.model.Infer(s.Context, phi, o.v)
	numbers := s.draw(philox.Hidden, place, q.Dist(), graph.T(s.DType, s.Batch(s.data), s.cfg.Net.Hidden))
	each := s.cfg.Lower.Lower(s.Context, s.model, s.theta.P, q, o.v, q.Sample(s.Context, numbers))
	if s.cfg.Objective == MDSM && s.cfg.Lower == latent.Fisher {
		each = s.Div(each, o.sigma)
	}
	return s.Mean(each)
}

// fitted takes the K steps of the lower level.
func (s *step) fitted(phi optim.State) optim.State {
	for i := range s.cfg.steps() {
		name := fmt.Sprintf("lower %d", i)
		s.Builder.Scope(name, func() {
			s.lowerLoss = s.lower(phi.P, lowerPlace+i)
			grads := ddp.Sync(s.Builder, s.World, name, s.Grad(s.lowerLoss, phi.P...))
			phi = s.cfg.Pure().Step(s.Context, phi, grads, s.rates[i])
		})
	}
	return phi
}
