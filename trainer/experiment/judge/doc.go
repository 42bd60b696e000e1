// Package judge says whether what an experiment measured is what was claimed of
// it. A Table holds the numbers, by row, measure and seed; a Check is a claim
// about some of them, and gives a Verdict in words: it holds, it fails and by how
// much, or it cannot be said, because nothing was measured or too few seeds were.
//
// A claim about a measure is about its mean over seeds; an order must hold for
// each seed as well. What compares two values (Gap, Ratio, Order, Worse, Clear) takes the
// seeds that both have: a mean of three against another one of one of them compares seeds.
// Where such a number is within two standard errors of the end of what is claimed, too
// few seeds were run to tell, and the claim is undecided; of one seed the error is what
// other seeds of each row, or else of the row that differs most, say of the measure (in parts
// of a value, and much smaller rows in what they are), and where nobody has several seeds
// the number stands with "1 seed" beside it. Clear says how many standard deviations it wants
// instead, and Near and Bound have room for seeds in their ends.
//
// A number that is missing is never taken for one that agrees. Everything here is a pure
// function of its arguments.
package judge
