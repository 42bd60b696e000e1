// Package lm is a language model: long short-term memory that predicts each word of
// a sentence from those before it [ALGORITHMS.md §4, Text]. It has no latent: it is
// what the latent-space prior of text is held against.
//
// The loss is −log p of a sentence, the sum over its words and its end, averaged over
// the global batch; the gradient is averaged over ranks, its norm clipped, and one
// step of Adam taken. Padding counts nowhere.
package lm
