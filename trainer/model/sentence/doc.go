// Package sentence is a recurrent network that writes sentences: words embedded, one
// layer of long short-term memory unrolled over the batch's length, and a linear
// layer that gives each word of the vocabulary a logit [ALGORITHMS.md §4, Text].
//
// Sentences are tokens (n, L), of which the first is data.Begin and each has its own
// length: token t+1 is predicted from tokens 0 … t and, where the network has one,
// from a latent. What lies behind a sentence's end is padding and never counts, in
// a loss, in its gradient or in a count of tokens.
//
// Arrays inside are time-major: rows of (T·n, …) are the n sentences at step 0, then
// those at step 1, with T = L − 1 steps.
package sentence
