// Package score is score matching as functions of a score: the losses that
// several methods minimise [ALGORITHMS.md §2.1], and the noise of multi-scale
// denoising.
//
// A loss takes the score S at some pictures, whatever it comes from (Of an
// unnormalised log density, a closed form, a bound), and gives each sample's
// term, (B):
//
//	Denoising(c, S(ṽ), ε, σ)           ½‖S + ε/σ‖²,          ṽ = v + σε
//	Multiscale(c, S(ṽ), ε, levels, σ₀) ½‖S/σᵢ + ε/σ₀²‖²,     ṽᵢ = vᵢ + σᵢεᵢ = Blur(c, v, ε, levels)
//	Sliced(c, S(v), v, u)              ½‖S‖² + uᵀ∇_v(Sᵀu),   u Rademacher (±1)
//
// Pictures, scores and noise are (B, …) with as many axes as the caller likes;
// levels are (B). Nothing is drawn here: the caller names its draws (purposes
// philox.Perturb for ε and philox.Projection for u).
//
// All functions are pure and may be called from any goroutine.
package score

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Of is ∇_v of Σ logp, the score of an unnormalised log density logp (B) of v, of
// v's shape. What of logp is not reached from v by differentiation (latents of a
// detached v) is constant.
func Of(c *nn.Context, logp, v graph.ID) graph.ID { return c.Grad(c.Sum(logp), v)[0] }

// Blur is vᵢ + σᵢεᵢ with levels σ, (B).
func Blur(c *nn.Context, v, eps, levels graph.ID) graph.ID {
	return c.Add(v, c.Mul(eps, Along(c, levels, v)))
}

// Denoising is denoising score matching, ½‖S + ε/σ‖² for the score S at v + σε, (B)
// [Vincent 2011].
func Denoising(c *nn.Context, s, eps graph.ID, sigma float64) graph.ID {
	return half(c, c.Add(s, c.Scale(eps, 1/sigma)))
}

// Multiscale is multi-scale denoising score matching, ½‖S/σᵢ + ε/σ₀²‖² for the score S
// at v + σᵢε, (B), with levels σᵢ, (B) [Li et al. 2019; the ½ is BiSM's code's].
// Reports show it times σ₀⁴.
func Multiscale(c *nn.Context, s, eps, levels graph.ID, sigma0 float64) graph.ID {
	return half(c, c.Add(c.Div(s, Along(c, levels, s)), c.Scale(eps, 1/(sigma0*sigma0))))
}

// Sliced is sliced score matching with its variance reduced, ½‖S‖² + uᵀ∇_v(Sᵀu)
// for the score S of v and directions u, all of one shape, (B) [Song et al.
// 2019]. Over u of mean 0 and covariance I its mean is ½‖S‖² + tr ∇S. Samples'
// scores must not depend on other samples.
func Sliced(c *nn.Context, s, v, u graph.ID) graph.ID {
	turned := c.Grad(c.Sum(c.Mul(s, u)), v)[0]
	return c.Add(half(c, s), perSample(c, c.Mul(turned, u)))
}

// half is ½‖x‖² of each sample, (B).
func half(c *nn.Context, x graph.ID) graph.ID {
	return c.Scale(perSample(c, c.Square(x)), 0.5)
}

// perSample adds all but the first axis, (B).
func perSample(c *nn.Context, x graph.ID) graph.ID {
	s := c.Shape(x)
	if c.Err() != nil || s.Rank() < 2 {
		return x
	}
	return c.Sum(c.Reshape(x, graph.D(s.At(0), s.Len()/s.At(0))), 1)
}

// Along is levels, (B), with as many axes as x has, (B, 1, …).
func Along(c *nn.Context, levels, x graph.ID) graph.ID {
	s := c.Shape(x)
	if c.Err() != nil {
		return levels
	}
	for i := 1; i < s.Rank(); i++ {
		s = s.With(i, 1)
	}
	return c.Reshape(levels, s)
}
