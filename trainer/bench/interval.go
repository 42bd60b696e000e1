package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ebtrain/collective/cost"
)

// confidence is that of all intervals.
const confidence = 0.95

// fewest is the number of values whose extremes hold the median with that confidence:
// they miss it if all are on one side, 2·2⁻ⁿ.
const fewest = 6

// medianOf is the median of v, not empty, between two of its own values that hold that
// of the distribution with 95 % confidence, whatever it is: so many values below the
// median as a coin's heads. With fewer than 6 values it is their range.
func medianOf(v []float64) cost.Interval {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	coin := distuv.Binomial{N: float64(n), P: 0.5}
	j := 0 // values left out at either end
	for j+1 < n-j-1 && coin.CDF(float64(j)) <= (1-confidence)/2 {
		j++
	}
	j = max(0, j-1)
	return cost.Interval{Value: (v[n/2] + v[(n-1)/2]) / 2, Low: v[j], High: v[n-1-j]}
}

// halfWidth is half the interval over its value.
func halfWidth(i cost.Interval) float64 { return (i.High - i.Low) / 2 / i.Value }

// quantiles are the 2.5 %, 50 % and 97.5 % of drawn values.
func quantiles(v []float64) cost.Interval {
	v = slices.Sorted(slices.Values(v))
	at := func(q float64) float64 { return v[int(math.Round(q*float64(len(v)-1)))] }
	return cost.Interval{Value: at(0.5), Low: at((1 - confidence) / 2), High: at((1 + confidence) / 2)}
}
