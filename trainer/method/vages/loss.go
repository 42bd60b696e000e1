package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/score"
)

// estimate is that of a config, with the posterior's parameters φ.
func (d drawer) estimate(phi []graph.ID) estimate {
	switch d.cfg.Estimator {
	case Exact:
		return exact()
	case Importance:
		return importance()
	}
	return variational{phi}
}

// upper are the samples' (or pairs') terms of the loss, as values, and of a surrogate
// whose gradient in θ is the estimated one of the loss:
//
//	DSM:  ½‖S + ε/σ‖²,  v = data + σε
//	MDSM: ½‖S/σ + ε/σ₀²‖²,  v = data + σε, σ by place in the global batch
//	SSM:  ½‖S‖² + uᵀ∇_v(Sᵀu),  u of ±1
//	KSD:  see pairs.go
func (d drawer) upper(e estimate) (surrogate, loss graph.ID) {
	if d.cfg.Objective == KSD {
		return d.pairs(e)
	}
	o := d.see(scorePlace)
	f, loss := d.functional(e, o)
	return e.surrogate(d, o.v, f), loss
}

// functional is the loss at the estimated score, and its change with the score.
func (d drawer) functional(e estimate, o seen) (f functional, loss graph.ID) {
	s := e.score(d, o.v)
	switch d.cfg.Objective {
	case DSM:
		return functional{z: d.Add(s, d.Scale(o.eps, 1/d.cfg.Sigma))}, score.Denoising(d.Context, s, o.eps, d.cfg.Sigma)
	case MDSM:
		s0 := d.cfg.Sigma0
		sigma := score.Along(d.Context, o.sigma, s)
		z := d.Div(d.Add(d.Div(s, sigma), d.Scale(o.eps, 1/(s0*s0))), sigma)
		return functional{z: z}, score.Multiscale(d.Context, s, o.eps, o.sigma, s0)
	}
	u := d.draw(philox.Projection, scorePlace, graph.Rademacher, d.Type(o.v))
	curve, slope := e.curve(d, o.v, u)
	half := d.Scale(d.Sum(d.Square(d.flat(s)), 1), 0.5)
	return functional{z: s, u: u, slope: slope}, d.Add(half, curve)
}

// flat is x (B, …) as (B, n).
func (d drawer) flat(x graph.ID) graph.ID {
	return d.Reshape(x, graph.D(d.Batch(x), d.Shape(x).Len()/d.Batch(x)))
}
