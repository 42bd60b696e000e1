// Package sm is score matching without latents in the loss: the baselines that
// bi-level score matching is held against [ALGORITHMS.md §2.2, §2.3].
//
// A Gaussian RBM's marginal score has a closed form, and is matched exactly
// (SSM; Hyvärinen 2005), by random projections (sliced), or to the score of
// noise (DSM). A visible energy-based model, a residual network with a quadratic
// head, is matched to noise of many levels (MDSM; Li et al. 2019). With v̂ a
// sample, ε standard normal and S the model's score,
//
//	ssm   ½‖S(v)‖² + tr ∇S(v)
//	dsm   ½‖S(v + σε) + ε/σ‖²
//	mdsm  ½‖S(v + σᵢε)/σᵢ + ε/σ₀²‖², σᵢ from a grid over the global batch
//
// averaged over the global batch, and one step of Adam (β = 0.9, 0.95) down it.
package sm
