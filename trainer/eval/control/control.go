// Package control makes sets of pictures and of sentences that are known to be bad,
// so that a measure of samples can be seen to tell them from good ones: noise, blurred
// pictures, pictures whose pixels are shuffled, pictures of one class only; points whose
// columns know nothing of each other; sentences
// of words that know nothing of each other, or stand in any order, and a few again
// and again.
//
// Pictures are (n, C, H, W). Everything is a pure function of its arguments and
// a seed; what is given is left as it is.
package control

import (
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/feature"
)

func name(seed uint64, sub uint16, sample int) philox.Name {
	return philox.Name{Seed: seed, Purpose: philox.Sampling, Sub: sub, Sample: uint32(sample)}
}

// Noise are n pictures of values uniform on [−1, 1].
func Noise(n int, s feature.Size, seed uint64) []float32 {
	x, u := make([]float32, 0, n*s.Len()), make([]float64, s.Len())
	for i := range n {
		name(seed, philox.SamplingNoise, i).Uniform(u)
		for _, v := range u {
			x = append(x, float32(2*v-1))
		}
	}
	return x
}

// Blurred are pictures smoothed twice by (1,4,6,4,1)/16 in both directions: by a
// Gaussian of standard deviation √2 pixels. Beyond an edge is its last pixel.
func Blurred(x []float32, s feature.Size) []float32 {
	out := append([]float32(nil), x...)
	other := make([]float32, len(x))
	for range 2 {
		smooth(other, out, 1, s.W)   // along rows
		smooth(out, other, s.W, s.H) // along columns
	}
	return out
}

// smooth smooths lines of n values, step apart.
func smooth(dst, src []float32, step, n int) {
	kernel := [5]float32{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
	for i := range src {
		at := i / step % n
		sum := float32(0)
		for k, f := range kernel {
			to := min(max(at+k-2, 0), n-1)
			sum += f * src[i+(to-at)*step]
		}
		dst[i] = sum
	}
}

// Shuffled are pictures of whose pixels each has its colour, and another place: a
// permutation of its own for each picture.
func Shuffled(x []float32, s feature.Size, seed uint64) []float32 {
	out := make([]float32, len(x))
	pixels := s.H * s.W
	for i := range len(x) / s.Len() {
		for to, from := range name(seed, philox.SamplingPixels, i).Perm(pixels) {
			for c := range s.C {
				out[i*s.Len()+c*pixels+to] = x[i*s.Len()+c*pixels+from]
			}
		}
	}
	return out
}

// OneClass chooses n of the pictures that have the first one's label; where there
// are fewer, they are repeated. repeated says so.
func OneClass(labels []int64, n int, seed uint64) (chosen []int, repeated bool) {
	var of []int
	for i, l := range labels {
		if l == labels[0] {
			of = append(of, i)
		}
	}
	order := name(seed, philox.SamplingClass, 0).Perm(len(of))
	for i := range n {
		chosen = append(chosen, of[order[i%len(of)]])
	}
	return chosen, n > len(of)
}
