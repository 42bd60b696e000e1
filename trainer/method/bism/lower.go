package bism

import "ebtrain/ddp/graph"

// lower is G(θ, φ) on this rank's samples, with the draws of a place, a scalar:
//
//	KL:     −⟨−E(v,h) − log q(h|v)⟩
//	Fisher: ½⟨‖∇_h(−E(v,h) − log q(h|v))‖²⟩, with MDSM each divided by its σ
//
// at h ~ q(h|v); gradients flow through h, and none through v.
func (s *step) lower(phi []graph.ID, place int) graph.ID {
	o := s.see(place)
	v := s.StopGrad(o.v)
	q := s.pair.infer(s.Context, phi, v)
	h := s.hidden(q, place)
	if s.cfg.Lower == KL {
		return s.Neg(s.Mean(logRatio(s.Context, s.pair, s.theta.P, q, v, h)))
	}
	each := pull(s.Context, s.pair, s.theta.P, q, v, h)
	if s.cfg.Objective == MDSM {
		each = s.Div(each, o.sigma)
	}
	return s.Mean(each)
}
