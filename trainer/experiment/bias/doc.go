// Package bias measures how far the hypergradient of BiSM with N unrolled steps is
// from where it tends to, on one batch with one set of draws and θ as it is drawn
// [ALGORITHMS.md §2.1, Theorem 2 and Figure 1]: the lower level is then one
// function of φ, which plain steps descend.
//
// From the φ that is drawn, K steps lead to φ⁰. The bias of (K, N) is
//
//	‖g(K, N) − g*‖ / ‖g*‖,  g(K, N) = dJ(φᴺ(θ))/dθ unrolled from φ⁰,
//
// where g* is g of many steps and many unrolled ones. Too long steps make the
// unrolled gradient grow without bound; then there is no bias to be stated, and
// that is what is said.
//
// Steps are in float32, as in training, gradients in float64. A study belongs to
// one goroutine.
package bias
