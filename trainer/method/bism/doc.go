// Package bism is BiSM, bi-level score matching of energy-based latent variable
// models [ALGORITHMS.md §2].
//
// A model p(v,h) ∝ exp(−E(v,h; θ)) has an approximate posterior q(h|v; φ). The
// lower level fits q to the model; the upper level fits the model to the data by
// score matching, in which log p̃(v,h) − log q(h|v) stands for the unknown
// log p(v). The best φ depends on θ, and the upper level is differentiated
// through that: a step, on one batch, is
//
//	φ⁰ ← φ after K steps on G(θ, φ), kept
//	φᴺ(θ) ← φ⁰ after N more, differentiable in θ, thrown away afterwards
//	θ ← θ − a step along dJ(θ, φᴺ(θ))/dθ
//
// A step is one graph. Every gradient of the lower level is the mean over all
// ranks, by an all-reduce that is a node of the graph; so the way back averages
// its cotangent too, and any number of ranks computes what one does.
//
// A file holds one idea: config, setting, validate, fit and preset say what is
// computed; noise, lower, upper, inner and step build a step, report what it tells, and
// hyper its outer gradient alone; model what else is to be had of a trained one. What an
// energy and a posterior are is package latent.
//
// Everything of this package is a plain value; a graph under construction
// belongs to one goroutine.
package bism
