// Package judge says whether what an experiment measured is what was claimed of
// it. A Table holds the numbers, by row, measure and seed; a Check is a claim
// about some of them, and gives a Verdict in words: it holds, it fails and by how
// much, or it cannot be said because nothing was measured.
//
// A claim about a measure is about its mean over seeds; an order must hold for
// each seed as well. A number that is missing is never taken for one that
// agrees. Everything here is a pure function of its arguments.
package judge
