// Package sm is score matching without latents in the loss: the baselines that
// bi-level score matching is held against [ALGORITHMS.md §2.2, §2.3].
//
// A Gaussian RBM's marginal score has a closed form, and is matched to that of the data
// by random projections (SSM, sliced score matching; Song et al. 2019) or to the score of
// noise (DSM). A visible energy-based model, a residual network with a quadratic
// head, is matched to noise of many levels (MDSM; Li et al. 2019). With v a
// sample, ε standard normal, u of ±1 and S the model's score,
//
//	ssm   ½‖S(v)‖² + uᵀ∇(S(v)ᵀu)
//	dsm   ½‖S(v + σε) + ε/σ‖²
//	mdsm  ½‖S(v + σᵢε)/σᵢ + ε/σ₀²‖², σᵢ from a grid over the global batch
//
// averaged over the global batch, and one step of Adam (β = 0.9, 0.95) down it. SSM is
// the loss of that name of bism and vages. Its mean over u is score matching itself,
// ½‖S‖² + tr ∇S (Hyvärinen 2005), which has no noise; a Gaussian RBM has that in closed
// form, too, and it is taken where the trace is exact.
package sm
