package eval

import (
	"errors"
	"math"
	"slices"
)

// Quantile is the value below which the fraction P of a sample lies.
type Quantile struct{ P, Value float64 }

// Distribution describes a sample of real numbers.
type Distribution struct {
	N         int
	Mean, SD  float64 // SD with divisor N−1; 0 for N = 1
	Min, Max  float64
	Quantiles []Quantile // at the fractions of Fractions
	NonFinite int        // NaN and infinities, left out of all of the above
}

// Fractions are those of a Distribution's quantiles.
func Fractions() []float64 {
	return []float64{0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99}
}

// Describe computes the distribution of x, which is left as it is. Nothing is an error,
// and values none of which is finite are a NotFiniteError.
func Describe(x []float64) (Distribution, error) {
	var d Distribution
	sorted := make([]float64, 0, len(x))
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d.NonFinite++
			continue
		}
		sorted = append(sorted, v)
	}
	switch {
	case len(x) == 0:
		return d, errors.New("eval: there are no values to describe")
	case len(sorted) == 0:
		return d, NotFinite("eval: none of %d values is finite", len(x))
	}
	slices.Sort(sorted)
	d.N = len(sorted)
	d.Min, d.Max = sorted[0], sorted[d.N-1]
	d.Mean, d.SD = moments(sorted)
	d.Quantiles = quantiles(sorted)
	return d, nil
}

// moments is the mean and the standard deviation, in two passes.
func moments(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	if len(x) == 1 {
		return mean, 0
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / float64(len(x)-1))
}

func quantiles(sorted []float64) []Quantile {
	var q []Quantile
	for _, p := range Fractions() {
		q = append(q, Quantile{p, quantile(sorted, p)})
	}
	return q
}

// quantile interpolates between the order statistics around (n−1)·p, which is
// what NumPy and R do unless told otherwise.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	f := at - float64(i)
	if f == 0 || sorted[i] == sorted[i+1] {
		return sorted[i]
	}
	return sorted[i] + f*(sorted[i+1]-sorted[i])
}
