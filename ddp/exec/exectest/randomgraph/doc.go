// Package randomgraph grows random programs and holds backends to the reference
// and to themselves on them. It finds what nobody thought of: Hunt runs for a
// time, or over a number of seeds, and what fails it makes small.
//
// # Programs
//
// A program is a function of choices: those of a seed, or the bytes of a fuzz
// target. It draws on the whole op set (ops that occur in derivatives only, too),
// on all element types, on shapes of extents 0, 1 and primes, up to thousands of
// elements; one in four is mostly of images, which convolutions take. It has
//
//   - values used twice, views, aliases among outputs, dead code;
//   - variables, some assigned, swaps among them, over several steps;
//   - collectives, on one to three ranks;
//   - gradients of the first three orders, of smooth functions or with kinks, products
//     of Hessians, derivatives forward;
//   - unrolled recurrences (gradient descent with momentum, leapfrog, and made-up
//     ones);
//   - or the form of a data-parallel step, to be cut into virtual shards, or of one whose
//     optimiser's state two to four ranks share.
//
// Values stay near 1, but for one program in six, whose leaves hold infinities and NaN, or
// zeros of both signs and subnormal numbers, or huge numbers. Functions that jump are applied to values without rounding
// only, such as leaves, their moves and comparisons; variables among them are assigned
// such values.
//
// # What must hold
//
// Results are near those of the reference in float64. How near, the reference
// says itself: it runs again on the same graph with each result of arithmetic,
// and each operand of a sum or product, off by up to an ε of its type, at random.
// A backend may be off by 32 times what an element then moves, and 4 times what
// the value's elements move at most. What is further off is tried against twelve
// more such runs before it is an error: a graph may stand on an edge.
//
// What is not finite in the reference is the same in a backend: NaN, of any payload, or the
// same infinity. What is finite there is finite. So a backend can neither hide that a
// training has diverged nor invent it. There are three exceptions (wild.go), each by a run of
// the reference that says which elements depend on it:
//
//   - a convolution of an operand that is not finite may make NaN of any result of the same
//     image, and by some operands of the same or of all channels (spread);
//   - where a sum, or what is computed, is so large that it may overflow in some order, what
//     depends on it is not compared (overflow);
//   - subnormal leaves may count as zeros (flushed).
//
// Targets that promise the same bits give the same bits (rematerialisation, a
// second program, a second run after others). So do 1, 2 and 4 ranks that share
// virtual shards, and ranks that share an optimiser's state. A value computed alone,
// with nothing shared, is near the one computed with all others. Compiling takes no
// longer than a generous limit, and gives steps in proportion to nodes.
package randomgraph
