package quality

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"ebtrain/ddp/philox"
)

// Usual numbers of the kernel distance [Bińkowski et al. 2018].
const (
	Subsets    = 50
	SubsetSize = 1000
)

const mostProducts = 8 // of pairs of a subset, that are kept at a time: 8 MB each

// KID compares samples with data by the squared maximum mean discrepancy with the
// kernel (x·y/d + 1)³, without bias: its mean over sets from one distribution is 0,
// so it may be negative. It is the mean over subsets, each drawn from both sides
// without replacement.
type KID struct {
	Subsets, Size int
	Seed          uint64 // names the subsets
	Threads       int    // that compute beside Mul, which is called by one; less than 1 is 1
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
	means, err := k.means(x, y)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for i, mean := range means {
		total += terms[i%len(terms)].weight * mean
	}
	return total / float64(k.Subsets), nil
}

// terms are what is added up of a subset: pairs of sides, data and samples.
var terms = [3]struct {
	a, b   int
	weight float64
}{{0, 0, 1}, {1, 1, 1}, {0, 1, -2}}

// means are the mean kernels of all terms of all subsets. One is computed while Mul has
// the products of the next.
func (k KID) means(x, y Matrix) ([]float64, error) {
	rows := k.subsets(x.N, y.N)
	sides := [2]Matrix{NewMatrix(k.Size, x.D), NewMatrix(k.Size, x.D)}
	out := make([]float64, len(terms)*k.Subsets)
	products := make(chan []float64, min(max(1, k.Threads), mostProducts))
	for range cap(products) {
		products <- make([]float64, k.Size*k.Size)
	}
	var others sync.WaitGroup
	defer others.Wait()
	for i := range out {
		if i%len(terms) == 0 {
			sides[0].pick(x, rows[i/len(terms)][0], k.Threads)
			sides[1].pick(y, rows[i/len(terms)][1], k.Threads)
		}
		t, p := terms[i%len(terms)], <-products
		if err := k.Mul(sides[t.a], sides[t.b], p); err != nil {
			return nil, err
		}
		others.Go(func() {
			out[i] = k.mean(p, float64(x.D), t.a == t.b)
			products <- p
		})
	}
	return out, nil
}

// subsets are the rows of both sides that each subset takes.
func (k KID) subsets(nx, ny int) [][2][]int {
	out := make([][2][]int, k.Subsets)
	together(k.Threads, k.Subsets, func(numbers iter.Seq[int]) {
		for s := range numbers {
			out[s] = [2][]int{k.subset(nx, s, 0), k.subset(ny, s, 1)}
		}
	})
	return out
}

// subset are the rows of subset s; side keeps those of the two sides apart.
func (k KID) subset(n, s int, side uint32) []int {
	p := philox.Name{Seed: k.Seed, Purpose: philox.Sampling, Sub: philox.SamplingSubset, Step: uint32(s), Sample: side}.Perm(n)
	return slices.Clone(p[:k.Size])
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
