// Package ngram is a language model of n-grams with modified Kneser–Ney smoothing,
// interpolated: the probability of a word from the up to n − 1 words before it.
//
// [CG] S. F. Chen and J. Goodman, An empirical study of smoothing techniques for
// language modeling, Computer Speech and Language 13 (1999): the discounts, eq. 26,
// and the interpolation, eq. 24 and 25. [H] K. Heafield, I. Pouzyrevsky, J. H. Clark
// and P. Koehn, Scalable modified Kneser–Ney language model estimation, ACL 2013:
// one begin of a sentence in the place of n − 1 of them, and the counts that follow
// from it.
//
// With w the word and c = c₁ … c_k what stands before it,
//
//	p(w | c) = max(a(cw) − D(a(cw)), 0) / Σ_v a(cv) + b(c)·p(w | c₂ … c_k)
//	b(c)     = Σ_v D(a(cv)) / Σ_v a(cv)
//
// where the sums are over what was seen after c, and p is the shorter context's where
// c was never seen. Below all is the uniform distribution of the words that can come:
// all of the vocabulary, <unk> and the end of a sentence among them, but neither
// padding nor a begin. So probabilities of every context add up to 1, and none is 0.
//
// a is the count of an n-gram of the greatest length, or of one that begins with the
// begin of a sentence; of any other it is the number of different words that were
// seen before it. The discounts of a length are, with t_i the number of its n-grams
// with a = i and Y = t₁/(t₁ + 2t₂),
//
//	D(i) = i − (i + 1)·Y·t_{i+1}/t_i for i = 1, 2;  D(i) = D₃ = 3 − 4·Y·t₄/t₃ for i ≥ 3.
//
// Training is a pure function of the sentences and their order changes nothing. A
// Model is not changed once trained, and may be used from any goroutine.
package ngram
