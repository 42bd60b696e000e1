// Package graph is a typed, immutable graph of tensor operations with exact
// reverse-mode differentiation of any order.
//
// A Builder makes nodes in topological order; nodes never change. A node is
// an Op applied to values; each of its outputs is a value with an ID and a
// Type (element type and static shape). Ops are comparable Go values, and
// (op, inputs) is the key of common-subexpression elimination itself, so two
// nodes are merged exactly when they are the same computation.
//
// The op set is closed: the derivative of every op is made of ops of the set.
// So Grad may be applied to gradients, any number of times, with respect to
// any value; Pushforward (forward mode) and HVP are made of the same pullbacks.
// Collectives are ops too (AllReduce, ReduceScatter, AllGather), so a sum over
// ranks can be differentiated, merged and scheduled like any other op.
//
// # Errors
//
// Builder methods return an ID and keep the first error, which names the
// scope ("energy/conv3") in which it happened; after an error they return 0.
// Build reports it. This keeps formulas readable: check once, at the end.
//
// # Conventions
//
// Images are (N, C, H, W), convolution weights (O, C/groups, KH, KW), matrices
// row-major. The layout in memory is the backend's business. Truth values are
// floats, 0 or 1. Random draws are functions of a key (see Draw).
//
// # Differentiation across ranks
//
// Let L_r be the scalar that rank r differentiates. Gradients are those of
// T = Σ_r L_r with respect to the rank's own copy of each value. AllReduce is
// linear and self-adjoint under T; ReduceScatter and AllGather are each other's
// adjoint. If every L_r is the mean over the rank's equal share of a batch, then the
// mean over ranks of a replicated parameter's gradient is the gradient of the global
// batch's mean loss.
//
// # Concurrency
//
// A Builder belongs to one goroutine. A Graph is immutable and may be shared.
package graph
