// Package vages is VaGES, score matching of energy-based latent variable models
// with variational estimates of the score and of its gradient [ALGORITHMS.md §3].
//
// A model p(v,h) ∝ exp(−E(v,h; θ)) has an approximate posterior q(h|v; φ). With
// s(v,h) = −∇_vE(v,h) and particles h ~ q(h|v), the score of the marginal and its
// derivative are
//
//	∇_v log p(v)          ≈ E_q[s]                                    (VaES)
//	∂∇_v log p(v)/∂θ      ≈ E_q[∂s/∂θ] + Cov_q(s, −∂E/∂θ)             (VaGES)
//
// with equality for the true posterior: the covariance is what the posterior does
// when θ moves, which BiSM has to unroll its lower level for. A step, on one batch,
// is
//
//	φ ← φ after K steps of the lower level, which fits q to the model
//	θ ← θ − a step along the VaGES gradient of a score matching loss
//
// Three independent sets of particles are drawn: one for the score that the loss is
// of, one for the expectation, one for the covariance.
//
// A file holds one idea: config, setting, validate, fit and preset say what is
// computed; sight and particles what is seen and drawn, and how it is refined; loss,
// pairs, estimate and surrogate the gradient; lower and step build a step; report and
// diagnose what it tells; model what is to be had of a trained one.
//
// Everything of this package is a plain value; a graph under construction belongs
// to one goroutine.
package vages
