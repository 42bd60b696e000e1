package main

import (
	"math"
	"slices"
)

// bin is neighbouring values: where they are and what they are in the mean, and what a
// tenth of them is below and a tenth above.
type bin struct{ x, y, low, high float64 }

const (
	singly = 80  // of so many values each is drawn
	most   = 200 // bins of a curve
	least  = 10  // values of a bin, where they are more than singly
)

// thin puts neighbouring values together: into bins of equal numbers of them but for the
// last, at most so many that a curve can be seen.
func thin(x, y []float64) []bin {
	n := len(y)
	size := 1
	if n > singly {
		size = max(least, (n+most-1)/most)
	}
	var bins []bin
	for lo := 0; lo < n; lo += size {
		hi := min(lo+size, n)
		sorted := slices.Sorted(slices.Values(y[lo:hi]))
		tenth := len(sorted) / 10
		bins = append(bins, bin{mean(x[lo:hi]), mean(y[lo:hi]), sorted[tenth], sorted[len(sorted)-1-tenth]})
	}
	return bins
}

// mean does not overflow where its result does not.
func mean(v []float64) float64 {
	m := 0.0
	for i, x := range v {
		m += x/float64(i+1) - m/float64(i+1)
	}
	return m
}

// far is the largest value of a diagram: it has no room around values near the end of float64.
const far = 1e300

// shown is the interval of a diagram: of all values but the hundredth least and most, with
// room around it; or, if whole, of all. It is wide enough for marks that differ.
func shown(values []float64, whole bool) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	cut := len(sorted) / 100
	if whole {
		cut = 0
	}
	low, high = max(sorted[cut], -far), min(sorted[len(sorted)-1-cut], far)
	room := max((high-low)/20, math.Abs(high)/1e4, math.Abs(low)/1e4, 1e-12)
	return low - room, high + room
}
