// Package philox is Philox4x32-10, the counter-based generator behind every
// random number of ebtrain [Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011].
//
// Randomness is a name, not a state: a draw is a pure function of (seed,
// purpose, step, sample, element), so it is the same on any rank, for any
// world size, and after a resume. Nothing is stored and nothing is shared;
// all functions may be called from any goroutine.
package philox

// Purpose says what a draw is for. Numbers are part of the checkpoint format:
// append only, never reuse. Where nothing else is said, step is the training
// step and sample the index in the global batch; sub tells apart the draws of a
// step (each inner step has its own).
type Purpose uint16

const (
	Init      Purpose = 1 // initial weights; step and sample = hash of the variable's name
	Latent    Purpose = 2 // ĥ ~ N(0, I)
	Posterior Purpose = 3 // ε of h = μ + σ⊙ε
	DataOrder Purpose = 4 // permutations of shards, blocks and samples; step = epoch, sub = one of those named DataOrder…
	Augment   Purpose = 5 // flips; sample = index in the data set, sub = one of those named Augment…
	Sampling  Purpose = 6 // latents of samples, and what an evaluation draws beside them; sub = one of those named Sampling…
	Synthetic Purpose = 7 // the built-in picture set; sub = split, sample = picture
	Power     Purpose = 8 // nothing: first vectors of spectral norm are initial values (Init)
	Testing   Purpose = 9 // inputs of tests, checks and benchmarks

	Perturb    Purpose = 10 // ε of denoising, ṽ = v + σε
	Hidden     Purpose = 11 // h ~ q(h|v) or p(h|v) in the lower and upper levels: normal, or uniform for Gumbel
	Projection Purpose = 12 // random projections of sliced score matching and of traces
	Chain      Purpose = 13 // samplers and AIS; step = transition, of which a start is one, sample = chain
	Negative   Purpose = 14 // Gibbs sweeps inside a training step (CD, PCD); sample = chain, which is a slot of the global batch
	Contrast   Purpose = 15 // noise samples of noise-contrastive estimation
	Generated  Purpose = 16 // the built-in sets of points; sub = density, step = split, sample = point
	Refine     Purpose = 17 // Langevin steps of particles inside a training step; sub = set and step
	Langevin   Purpose = 18 // Langevin chains of latents inside a training step; sub = chain and its start or step
	Dropout    Purpose = 19 // which values a training step leaves out
)

// Name names a stream of draws. Step and Sample take 32 bits each; Sub
// distinguishes draws of the same purpose inside one step.
type Name struct {
	Seed    uint64
	Purpose Purpose
	Sub     uint16
	Step    uint32
	Sample  uint32
}

const (
	m0, m1 = 0xD2511F53, 0xCD9E8D57
	w0, w1 = 0x9E3779B9, 0xBB67AE85
)

// Block is draw number i of the stream: four independent uniform 32-bit words,
// which serve elements 4i … 4i+3.
//
// The counter is (i, Sample, Step, Purpose<<16|Sub), the key is Seed.
func (n Name) Block(i uint32) [4]uint32 {
	return Rounds([4]uint32{i, n.Sample, n.Step, uint32(n.Purpose)<<16 | uint32(n.Sub)},
		[2]uint32{uint32(n.Seed), uint32(n.Seed >> 32)})
}

// Rounds is the bijection itself: ten rounds of Philox4x32 on ctr under key.
func Rounds(ctr [4]uint32, key [2]uint32) [4]uint32 {
	for r := range 10 {
		if r > 0 {
			key[0] += w0
			key[1] += w1
		}
		p0 := uint64(m0) * uint64(ctr[0])
		p1 := uint64(m1) * uint64(ctr[2])
		ctr = [4]uint32{
			uint32(p1>>32) ^ ctr[1] ^ key[0], uint32(p1),
			uint32(p0>>32) ^ ctr[3] ^ key[1], uint32(p0),
		}
	}
	return ctr
}

// Uint32 is element i as a uniform 32-bit word.
func (n Name) Uint32(i int) uint32 { return n.Block(uint32(i / 4))[i%4] }

// Float64 maps a word to the open interval (0, 1): (⌊u/2⁸⌋ + ½)·2⁻²⁴. Up to ½
// every value is exact in float32; above it is rounded there, and the last is 1.
func Float64(u uint32) float64 { return (float64(u>>8) + 0.5) * 0x1p-24 }

// Intn is element i as a uniform integer in [0, n), 0 < n ≤ 2³¹, by
// multiplication; its bias is below n·2⁻⁶⁴ because two words are used.
func (n Name) Intn(i, max int) int {
	b := n.Block(uint32(i))
	hi, lo := uint64(b[0]), uint64(b[1])
	m := uint64(max)
	return int((hi*m + lo*m>>32) >> 32)
}

// Perm is the permutation of 0 … len−1 named by n (Fisher and Yates).
func (n Name) Perm(length int) []int {
	p := make([]int, length)
	n.Permute(p)
	return p
}

// Permute makes p the permutation of Perm(len(p)).
func (n Name) Permute(p []int) {
	for i := range p {
		p[i] = i
	}
	for i := len(p) - 1; i > 0; i-- {
		j := n.Intn(i, i+1)
		p[i], p[j] = p[j], p[i]
	}
}
