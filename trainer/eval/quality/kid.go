package quality

import (
	"fmt"

	"ebtrain/ddp/philox"
)

// Usual numbers of the kernel distance [Bińkowski et al. 2018].
const (
	Subsets    = 50
	SubsetSize = 1000
)

// KID compares samples with data by the squared maximum mean discrepancy with the
// kernel (x·y/d + 1)³, without bias: its mean over sets from one distribution is 0,
// so it may be negative. It is the mean over subsets, each drawn from both sides
// without replacement.
type KID struct {
	Subsets, Size int
	Seed          uint64 // names the subsets
	Mul           Products
}

// Of is the distance of samples y from data x.
func (k KID) Of(x, y Matrix) (float64, error) {
	if err := checkBoth("a kernel distance", 2, x, y); err != nil {
		return 0, err
	}
	if k.Subsets < 1 || k.Size < 2 || k.Size > min(x.N, y.N) {
		return 0, fmt.Errorf("quality: a kernel distance over %d subsets of %d, of %d and %d samples", k.Subsets, k.Size, x.N, y.N)
	}
	out, total := make([]float64, k.Size*k.Size), 0.0
	for s := range k.Subsets {
		a, b := x.Pick(k.subset(x.N, s, 0)), y.Pick(k.subset(y.N, s, 1))
		for _, term := range []struct {
			x, y   Matrix
			weight float64
		}{{a, a, 1}, {b, b, 1}, {a, b, -2}} {
			if err := k.Mul(term.x, term.y, out); err != nil {
				return 0, err
			}
			total += term.weight * k.mean(out, float64(x.D), term.weight > 0)
		}
	}
	return total / float64(k.Subsets), nil
}

// subset are the rows of subset s; side keeps those of the two sides apart.
func (k KID) subset(n, s int, side uint32) []int {
	p := philox.Name{Seed: k.Seed, Purpose: philox.Sampling, Sub: 2, Step: uint32(s), Sample: side}.Perm(n)
	return p[:k.Size]
}

// mean is the mean of the kernel over pairs, by products: of all pairs, or of those
// of different samples.
func (k KID) mean(products []float64, d float64, different bool) float64 {
	sum, n := 0.0, k.Size
	for _, p := range products {
		sum += cube(p/d + 1)
	}
	if !different {
		return sum / float64(n*n)
	}
	for i := range n {
		sum -= cube(products[i*n+i]/d + 1)
	}
	return sum / float64(n*(n-1))
}

func cube(v float64) float64 { return v * v * v }
