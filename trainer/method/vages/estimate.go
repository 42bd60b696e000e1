package vages

import (
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
)

// estimate is what stands for the score of the marginal p(v), on the samples that a
// drawer looks at.
type estimate interface {
	// score is ∇_v log p(v), (B, shape), as a constant.
	score(d drawer, v graph.ID) graph.ID
	// curve is uᵀ∇_v(uᵀ∇_v log p(v)), (B), and uᵀ∇_v log p(v), (B), as constants.
	curve(d drawer, v, u graph.ID) (curve, slope graph.ID)
	// surrogate is a scalar for each sample, (B), whose gradient in θ is that of f of
	// the score.
	surrogate(d drawer, v graph.ID, f functional) graph.ID
}

// functional is a function of the score at some samples, by its linear part at the
// estimated one: its change is zᵀ∂s, and with a direction u that of uᵀ∇_v(uᵀs) besides.
type functional struct {
	z     graph.ID // (B, shape), constant
	u     graph.ID // (B, shape), 0 for none
	slope graph.ID // with u: uᵀs, (B), constant
}

// marginal is an estimate by a formula for log p(v) but for its normaliser, (B).
type marginal struct {
	logp func(d drawer, theta []graph.ID, v graph.ID) graph.ID
}

func (m marginal) score(d drawer, v graph.ID) graph.ID {
	return d.StopGrad(d.Grad(d.Sum(m.logp(d, d.theta, v)), v)[0])
}

func (m marginal) curve(d drawer, v, u graph.ID) (curve, slope graph.ID) {
	a := d.Pushforward(m.logp(d, d.theta, v), v, u)
	return d.StopGrad(d.Pushforward(a, v, u)), d.StopGrad(a)
}

func (m marginal) surrogate(d drawer, v graph.ID, f functional) graph.ID {
	y := m.logp(d, d.theta, v)
	g := d.Pushforward(y, v, f.z)
	if f.u != 0 {
		g = d.Add(g, d.Pushforward(d.Pushforward(y, v, f.u), v, f.u))
	}
	return g
}

// exact is a GRBM's −F(v).
func exact() marginal {
	return marginal{func(d drawer, theta []graph.ID, v graph.ID) graph.ID {
		return d.Neg(grbm.Of(theta).FreeEnergy(d.Context, v))
	}}
}

// importance is −F(v) estimated from L latents of d_h fair coins each,
// log Σ_l exp(−E(v,h_l)) − log L + d_h·log 2.
func importance() marginal {
	return marginal{func(d drawer, theta []graph.ID, v graph.ID) graph.ID {
		u := d.latents(scorePlace, d.Batch(v), graph.Uniform)
		half := d.Full(d.Type(u), 0.5)
		y := d.logp(theta, v, cloud{d.Greater(u, half), d.cfg.Particles})
		return d.Shift(d.LogSumExp(y, 1), float64(d.cfg.Net.Hidden)*math.Ln2-math.Log(float64(d.cfg.Particles)))
	}}
}

// variational is VaES and VaGES with q(h|v; φ).
type variational struct{ phi []graph.ID }

// infer is q at v, which differentiation does not pass.
func (e variational) infer(d drawer, v graph.ID) latent.Belief {
	return d.model.Infer(d.Context, d.constant(e.phi), d.StopGrad(v))
}

func (e variational) score(d drawer, v graph.ID) graph.ID {
	c := d.particles(e.infer(d, v), v, scorePlace)
	y := d.Mean(d.logp(d.theta, v, c), 1)
	if d.cfg.ControlVariate {
		q := d.model.Infer(d.Context, d.constant(e.phi), v).Repeat(d.Context, c.n)
		y = d.Sub(y, d.Mean(d.Reshape(q.LogProb(d.Context, c.h), graph.D(d.Batch(v), c.n)), 1))
	}
	return d.StopGrad(d.Grad(d.Sum(y), v)[0])
}

// curve adds what the posterior does when v moves: the derivative of E_q[a] along u,
// for a = uᵀs, is E_q[uᵀ∇_v a] + Var_q(a), by the identity behind VaGES.
func (e variational) curve(d drawer, v, u graph.ID) (curve, slope graph.ID) {
	c := d.particles(e.infer(d, v), v, scorePlace)
	a := d.Pushforward(d.logp(d.theta, v, c), v, u)
	mean := d.Mean(a, 1)
	curve = d.Mean(d.Pushforward(a, v, u), 1)
	if c.n > 1 {
		off := d.Sub(a, d.Reshape(mean, graph.D(d.Batch(v), 1)))
		curve = d.Add(curve, d.Scale(d.Sum(d.Square(off), 1), 1/float64(c.n-1)))
	}
	return d.StopGrad(curve), d.StopGrad(mean)
}

// surrogate is the mean over one set of particles of what f makes of each, and the
// covariance of that with log p̃ over another.
func (e variational) surrogate(d drawer, v graph.ID, f functional) graph.ID {
	q := e.infer(d, v)
	g := d.each(v, d.particles(q, v, meanPlace), d.theta, f)
	expectation := d.Mean(g, 1)
	if d.cfg.WithoutCovariance {
		return expectation
	}
	c := d.particles(q, v, covariancePlace)
	if d.cfg.Surrogate == Product {
		return d.Add(expectation, d.product(v, c, f))
	}
	return d.Add(expectation, d.covariance(v, c, f))
}
