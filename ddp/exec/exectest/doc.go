// Package exectest holds backends to the reference. Run is the conformance
// suite: every op in many shapes, whole networks with derivatives of the first
// three orders, random graphs, and the promises of package exec (assignments,
// aliases, dead code, collectives, errors).
//
// Package randomgraph, below, goes on from there: random programs of any kind, for
// as long as one likes.
//
// Cases is the table of single ops; package graph's own tests differentiate
// the same table.
//
// # Tolerances
//
// Exact: ops that only move, compare or count must give equal numbers. Near:
// functions of one or two elements may err by 16 units in the last place, or
// by two units of 1 near their zeros. Sum: a sum of n products may err by
// (n+4)·ε·Σ|terms|, the classical bound for any order of summation; Σ|terms|
// is the same graph on the absolute values of its inputs, as these ops are
// multilinear with coefficients that are not negative. Whole: a network may
// err by 64 times what the reference errs in the same precision against
// float64, plus 64 ε of its largest element: rounding after each element
// instead of each node costs a few times more, and a wrong kernel costs
// orders of magnitude more.
//
// Drawn: normal draws are a logarithm, a root and a sine of 2π times a number,
// and may err by 64·ε·(1+|z|).
//
// ε is 2⁻²³ for F32, 2⁻⁵² for F64. All inputs are functions of their names
// (philox, purpose Testing), so a failure can be run again.
package exectest
