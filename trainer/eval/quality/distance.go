package quality

import (
	"math"
	"slices"
)

// productError bounds how far a product of two rows, as a device gives it, is from the
// true one, as a share of the product of their lengths. Products in float32 are about
// 1e-6 away.
const productError = 1e-5

// pairs are rows of two matrices whose distances are compared. What products say of a
// distance decides where it is clear; what is not, such as a tie, is decided by the
// rows themselves, so that equal distances are equal.
type pairs struct {
	x, y    Matrix
	nx, ny  []float64 // squared lengths of the rows less y's mean
	longest float64   // of ny
}

// rounding bounds the error of the squared distance of rows i of x and j of y by
// products: they enter it twice, and 2ab ≤ a² + b².
func (p pairs) rounding(i, j int) float64 { return productError * (p.nx[i] + p.ny[j]) }

// exact is that squared distance.
func (p pairs) exact(i, j int) float64 {
	sum := 0.0
	b := p.y.Row(j)
	for k, v := range p.x.Row(i) {
		sum += (v - b[k]) * (v - b[k])
	}
	return sum
}

// within says whether rows i and j, of which products say d, are no farther apart than
// r; both are squared.
func (p pairs) within(i, j int, d, r float64) bool {
	if math.Abs(d-r) <= p.rounding(i, j) {
		d = p.exact(i, j)
	}
	return d <= r
}

// least are the n least squared distances of row i of x from rows of y but for row
// itself (−1 for none), rising, exactly; d2, which is used up, is what products say.
func (p pairs) least(i int, d2 []float64, n, itself int) []float64 {
	if itself >= 0 {
		d2[itself] = math.Inf(1)
	}
	most := least(d2, n)[n-1] + 2*productError*(p.nx[i]+p.longest) // what the nth is at most, by products
	var near []float64
	zeros := 0
	for j, d := range d2 {
		if d > most || zeros == n {
			continue
		}
		if d = p.exact(i, j); d == 0 {
			zeros++
		}
		near = append(near, d)
	}
	return least(near, n)
}

// least are the n least values, rising.
func least(values []float64, n int) []float64 {
	low := make([]float64, 0, n+1)
	for _, v := range values {
		if len(low) == n && v >= low[n-1] {
			continue
		}
		at, _ := slices.BinarySearch(low, v)
		low = slices.Insert(low, at, v)
		low = low[:min(n, len(low))]
	}
	return low
}
