package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/latent"
)

// each is what a functional makes of every particle's score, (B, L): the slope of
// log p̃ along z, and with a direction u
//
//	g = zᵀs + uᵀ∇_v a + a² − 2āa,  a = uᵀs,
//
// since the curve that sliced score matching has is E[uᵀ∇_v a] + E[a²] − E[a]², whose
// change is that of E[g] with ā the estimated mean of a.
func (d drawer) each(v graph.ID, c cloud, theta []graph.ID, f functional) graph.ID {
	p := d.probe(v, c, theta)
	g := p.along(p.logp, f.z)
	if f.u == 0 {
		return g
	}
	a := p.along(p.logp, f.u)
	mean := d.Reshape(f.slope, graph.D(d.Batch(v), 1))
	spread := d.Mul(a, d.Sub(a, d.Scale(mean, 2)))
	return d.Add(d.Add(g, p.along(a, f.u)), spread)
}

// probe is log p̃ of particles, (B, L), and its slopes along directions (B, shape).
type probe struct {
	logp  graph.ID
	along func(y, direction graph.ID) graph.ID
}

// probe is one of log p̃(v,h) in v. By forward mode all particles have theirs from one
// pass through the features of v; by backward mode every particle has a v of its own.
func (d drawer) probe(v graph.ID, c cloud, theta []graph.ID) probe {
	if d.cfg.Surrogate != Scores {
		return probe{d.logp(theta, v, c), func(y, direction graph.ID) graph.ID { return d.Pushforward(y, v, direction) }}
	}
	own := d.StopGrad(latent.Repeat(d.Context, v, c.n))
	e := d.model.EnergyOf(d.Context, theta, d.model.Features(d.Context, theta, own), c.h)
	rows := graph.D(d.Batch(v), c.n)
	return probe{d.Neg(d.Reshape(e, rows)), func(y, direction graph.ID) graph.ID {
		slope := d.Grad(d.Sum(y), own)[0]
		dot := d.Mul(slope, latent.Repeat(d.Context, direction, c.n))
		flat := graph.D(d.Batch(own), d.Shape(own).Len()/d.Batch(own))
		return d.Reshape(d.Sum(d.Reshape(dot, flat), 1), rows)
	}}
}

// covariance is Σ_l (g_l − ḡ)·log p̃(v,h_l)/(L−1), (B), with g and v constant: its
// gradient in θ is the sample covariance of g and ∇_θ log p̃.
func (d drawer) covariance(v graph.ID, c cloud, f functional) graph.ID {
	g := d.StopGrad(d.each(v, c, d.theta, f))
	off := d.Sub(g, d.MeanKeep(g, 1))
	y := d.logp(d.theta, d.StopGrad(v), c)
	return d.Scale(d.Sum(d.Mul(off, y), 1), 1/float64(c.n-1))
}

// product is the same as published: with A = log p̃ constant in θ and B = log p̃
// constant in v, zᵀ∇_v mean(AB) − (zᵀ∇_v mean A)·mean B, times L/(L−1).
func (d drawer) product(v graph.ID, c cloud, f functional) graph.ID {
	a, b := d.logp(d.constant(d.theta), v, c), d.logp(d.theta, d.StopGrad(v), c)
	along := func(y graph.ID) graph.ID { // zᵀ∇_v of each sample, (B)
		slope := d.Grad(d.Sum(y), v)[0]
		return d.Sum(d.Reshape(d.Mul(slope, f.z), graph.D(d.Batch(v), d.Shape(v).Len()/d.Batch(v))), 1)
	}
	both := along(d.Mean(d.Mul(a, b), 1))
	apart := d.Mul(d.StopGrad(along(d.Mean(a, 1))), d.Mean(b, 1))
	n := float64(c.n)
	return d.Scale(d.Sub(both, apart), n/(n-1))
}
