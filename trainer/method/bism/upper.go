package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/score"
)

// upper is J(θ, φ) on this rank's samples, a scalar.
func (s *step) upper(phi []graph.ID) graph.ID { return s.Mean(s.losses(phi)) }

// losses are the samples' terms of J(θ, φ), (B). With the score
// S = ∇_v[−E(v,h) − log q(h|v)] at one h ~ q(h|v), which is constant to ∇_v:
//
//	DSM:  ½⟨‖S + ε/σ‖²⟩,  v = data + σε
//	MDSM: ½⟨‖S/σ + ε/σ₀²‖²⟩,  v = data + σε, σ by place in the global batch
//	SSM:  ⟨½‖S‖² + uᵀ∇_v(Sᵀu)⟩,  u of ±1
func (s *step) losses(phi []graph.ID) graph.ID {
	o := s.see(upperPlace)
	at := s.score(phi, o.v)
	switch s.cfg.Objective {
	case DSM:
		return score.Denoising(s.Context, at, o.eps, s.cfg.Sigma)
	case MDSM:
		return score.Multiscale(s.Context, at, o.eps, o.sigma, s.cfg.Sigma0)
	}
	u := s.draw(philox.Projection, upperPlace, graph.Rademacher, s.Type(o.v))
	return score.Sliced(s.Context, at, o.v, u)
}

// score is S at v. h is drawn at a constant copy of v, so that ∇_v acts on the v
// of log p̃(v,h) and of log q(h|v) only. φ must not depend on v: what the inner
// steps see are constant copies too.
func (s *step) score(phi []graph.ID, v graph.ID) graph.ID {
	h := s.hidden(s.model.Infer(s.Context, phi, s.StopGrad(v)), upperPlace)
	q := s.model.Infer(s.Context, phi, v)
	return score.Of(s.Context, latent.LogRatio(s.Context, s.model, s.theta.P, q, v, h), v)
}
