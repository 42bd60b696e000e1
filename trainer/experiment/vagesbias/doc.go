// Package vagesbias measures how far VaES and VaGES are from the score of the marginal
// and from its derivative, where q(h|v) is not the posterior [ALGORITHMS.md §3.1,
// Theorems 1–4 and their numerical validation]: the squared length of the error of the
// expectation, against the divergence of q from the posterior, at one v and one θ.
//
// Two models, with h (d_h) and σ = 1:
//
//	units: E = ½‖v−b‖² − cᵀh − vᵀWh,  h in {0, 1};  q(h|v) are independent units
//	gauss: E = ½‖v−b‖² + ½Σκⱼhⱼ² − cᵀh − vᵀWh,  h real;  q(h|v) is N(μ, diag V)
//
// q is one linear layer of v, which gives the logits, or μ and ½log V. At first it is
// the posterior; then Gaussian noise is added to all of its weights, more at each
// level, in the same directions. The divergence is KL(q ‖ p(h|v)) for units and ½E_q of
// the squared difference of scores in h for gauss.
//
// All expectations are in closed form, so nothing has an error but rounding: s is
// linear in h, and so is ∂log p̃/∂θ but for κ, where it is quadratic. With the columns
// W_j, and Δ the difference of q's moments from the posterior's,
//
//	VaES:   ‖WΔm‖²
//	VaGES:  Σⱼ d_v Δmⱼ² + 2Δmⱼ ΔVⱼ vᵀW_j + (1+‖v‖²)‖W_j‖² ΔVⱼ²  [+ ‖W_j‖² Δ(mV)ⱼ², from κ]
//
// where m are means and V variances of h. Values are plain; a computation belongs to one
// goroutine.
package vagesbias
