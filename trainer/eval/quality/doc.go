// Package quality is the statistics that judge samples by comparing them with
// data: the Fréchet distance, the kernel distance KID, precision, recall, density
// and coverage, the sliced Wasserstein distance of Laplacian pyramids, distances
// to the nearest training sample, and the inception score.
//
// Most take features, a Matrix with a row for each sample, of whatever network;
// sums are float64. What is costly is products of matrices. They are a Products
// function, so that a caller may compute them on a device; Plain is the loop
// itself. No function changes or keeps what it is given unless it says so, and all
// may be called from any goroutine.
package quality

import (
	"fmt"
	"iter"
	"math"
)

// Rounding is what a spread is at most, over the size of the mean, that may be nothing but the
// rounding of equal numbers in float32, in which networks compute.
const Rounding = 1e-6

// Matrix is N rows of D values, row-major.
type Matrix struct {
	N, D int
	X    []float64
}

// NewMatrix is n rows of d zeros.
func NewMatrix(n, d int) Matrix { return Matrix{N: n, D: d, X: make([]float64, n*d)} }

// Row is row i, in place.
func (m Matrix) Row(i int) []float64 { return m.X[i*m.D : (i+1)*m.D] }

// Rows are rows from … to−1, in place.
func (m Matrix) Rows(from, to int) Matrix {
	return Matrix{N: to - from, D: m.D, X: m.X[from*m.D : to*m.D]}
}

// Pick is a copy of the rows of those numbers.
func (m Matrix) Pick(rows []int) Matrix {
	out := NewMatrix(len(rows), m.D)
	out.pick(m, rows, 1)
	return out
}

// pick makes the rows of m copies of those rows of from.
func (m Matrix) pick(from Matrix, rows []int, threads int) {
	together(threads, len(rows), func(numbers iter.Seq[int]) {
		for i := range numbers {
			copy(m.Row(i), from.Row(rows[i]))
		}
	})
}

// Mean is the mean row.
func (m Matrix) Mean() []float64 {
	mean := make([]float64, m.D)
	for i := range m.N {
		for j, v := range m.Row(i) {
			mean[j] += v
		}
	}
	for j := range mean {
		mean[j] /= float64(m.N)
	}
	return mean
}

// less is m with v taken off each row.
func (m Matrix) less(v []float64) Matrix {
	out := NewMatrix(m.N, m.D)
	for i := range m.N {
		to := out.Row(i)
		for j, x := range m.Row(i) {
			to[j] = x - v[j]
		}
	}
	return out
}

// check reports a matrix that is not finite, or has fewer than least rows.
func (m Matrix) check(what string, least int) error {
	if m.N < least {
		return fmt.Errorf("quality: %s of %d samples, want at least %d", what, m.N, least)
	}
	for i, v := range m.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("quality: %s: feature %d of sample %d is %v", what, i%m.D, i/m.D, v)
		}
	}
	return nil
}

// checkBoth is check of two matrices that are to be compared.
func checkBoth(what string, least int, x, y Matrix) error {
	if x.D != y.D {
		return fmt.Errorf("quality: %s of samples with %d features and samples with %d", what, x.D, y.D)
	}
	if err := x.check(what, least); err != nil {
		return err
	}
	return y.check(what, least)
}

// Products fills out with the products of every row of x with every row of y,
// (x.N, y.N): X·Yᵀ.
type Products func(x, y Matrix, out []float64) error

// Plain is
//
//	out[i·N+j] = Σₖ x[i,k]·y[j,k]
func Plain(x, y Matrix, out []float64) error {
	for i := range x.N {
		a := x.Row(i)
		for j := range y.N {
			sum := 0.0
			for k, v := range y.Row(j) {
				sum += a[k] * v
			}
			out[i*y.N+j] = sum
		}
	}
	return nil
}
