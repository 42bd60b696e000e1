package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/latent"
)

// cloud are particles of the samples of a batch: h (B·L, d_h), those of a sample one
// after the other, constant to differentiation.
type cloud struct {
	h graph.ID
	n int // L
}

// latents are L numbers a sample that a place's particles are made of, (B·L, d_h).
// Drawn as (B, L, d_h), they are named by the sample's slot in the global batch.
func (d drawer) latents(place, batch int, dist graph.Dist) graph.ID {
	l, hidden := d.cfg.Particles, d.cfg.Net.Hidden
	x := d.draw(philox.Hidden, place, dist, graph.T(d.DType, batch, l, hidden))
	return d.Reshape(x, graph.D(batch*l, hidden))
}

// particles are those of a place at v, for q(h|v) = q.
func (d drawer) particles(q latent.Belief, v graph.ID, place int) cloud {
	l := d.cfg.Particles
	h := q.Repeat(d.Context, l).Sample(d.Context, d.latents(place, d.Batch(v), q.Dist()))
	return cloud{d.StopGrad(d.refined(v, d.StopGrad(h), place)), l}
}

// refined is h after C steps of Langevin dynamics on p(h|v).
func (d drawer) refined(v, h graph.ID, place int) graph.ID {
	r := d.cfg.Refine
	if r.Steps == 0 {
		return h
	}
	l := d.cfg.Particles
	theta := d.constant(d.theta)
	features := d.repeated(d.model.Features(d.Context, theta, v), l)
	for i := range r.Steps {
		h = d.StopGrad(h)
		pull := d.Grad(d.Sum(d.model.EnergyOf(d.Context, theta, features, h)), h)[0]
		t := graph.T(d.DType, d.Batch(v), l, d.cfg.Net.Hidden)
		xi := d.Reshape(d.draw(philox.Refine, place*maxSteps+i, graph.Normal, t), d.Shape(h))
		h = d.Add(d.Sub(h, d.Scale(pull, r.Rate/2)), d.Scale(xi, r.Noise))
	}
	return h
}

// logp is log p̃(v,h) = −E(v,h) of every particle, (B, L).
func (d drawer) logp(theta []graph.ID, v graph.ID, c cloud) graph.ID {
	features := d.repeated(d.model.Features(d.Context, theta, v), c.n)
	e := d.model.EnergyOf(d.Context, theta, features, c.h)
	return d.Neg(d.Reshape(e, graph.D(d.Batch(v), c.n)))
}

// repeated is values of samples as values of their particles.
func (d drawer) repeated(features []graph.ID, n int) []graph.ID {
	all := make([]graph.ID, len(features))
	for i, f := range features {
		all[i] = latent.Repeat(d.Context, f, n)
	}
	return all
}

// constant is values that differentiation does not pass.
func (d drawer) constant(xs []graph.ID) []graph.ID {
	out := make([]graph.ID, len(xs))
	for i, x := range xs {
		out[i] = d.StopGrad(x)
	}
	return out
}
