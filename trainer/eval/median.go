package eval

import (
	"math"
	"slices"
)

// Median is the median of x, of an even number of values the mean of the two in the
// middle; NaN if one of them is, or of none. It leaves x as it is.
func Median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	if n == 0 || math.IsNaN(sorted[0]) { // NaN comes first
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
