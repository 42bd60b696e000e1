package eval

import "math"

// Average accumulates the mean of a quantity over samples, such as a log
// likelihood, a term of the Fisher divergence, or a posterior's gap, and how
// certain it is. Its zero value is ready. Values that are not finite make the
// results so: they are not left out.
type Average struct {
	sums [3]float64 // of values; of their squares; number of values
}

// Add adds the value of one sample.
func (a *Average) Add(v float64) {
	a.sums[0] += v
	a.sums[1] += v * v
	a.sums[2]++
}

// Sums is the accumulator's memory: the sum, the sum of squares, and the number
// of values (exact to 2⁵³). Adding two such vectors adds the accumulators.
func (a *Average) Sums() []float64 { return a.sums[:] }

// N is the number of values.
func (a *Average) N() int { return int(a.sums[2]) }

// Mean is the mean of the values; NaN if there are none.
func (a *Average) Mean() float64 { return a.sums[0] / a.sums[2] }

// SD is the values' standard deviation, with divisor N−1; NaN for fewer than two.
// It is as exact as the difference of the mean square and the squared mean: with
// an SD of 1e-4 of the mean, to 8 digits.
func (a *Average) SD() float64 {
	n := a.sums[2]
	if n < 2 {
		return math.NaN()
	}
	between := (a.sums[1] - a.sums[0]*a.sums[0]/n) / (n - 1)
	if between < 0 { // by rounding; NaN stays
		return 0
	}
	return math.Sqrt(between)
}

// SE is the standard error of the mean, SD/√N: of samples drawn independently.
func (a *Average) SE() float64 { return a.SD() / math.Sqrt(a.sums[2]) }
