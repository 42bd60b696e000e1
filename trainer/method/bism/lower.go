package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/latent"
)

// lower is G(θ, φ) on this rank's samples, with the draws of a place, a scalar:
//
//	KL:     −⟨−E(v,h) − log q(h|v)⟩
//	Fisher: ½⟨‖∇_h(−E(v,h) − log q(h|v))‖²⟩, with MDSM each divided by its σ
//
// at h ~ q(h|v); gradients flow through h, and none through v.
func (s *step) lower(phi []graph.ID, place int) graph.ID {
	o := s.see(place)
	v := s.StopGrad(o.v)
	q := s.model.Infer(s.Context, phi, v)
	h := s.hidden(q, place)
	each := s.cfg.Lower.Lower(s.Context, s.model, s.theta.P, q, v, h)
	if s.cfg.Lower == latent.KL {
		return s.Mean(each)
	}
	if s.cfg.Objective == MDSM {
		each = s.Div(each, o.sigma)
	}
	return s.Mean(each)
}
