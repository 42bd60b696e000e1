package eval

import (
	"fmt"
	"math"
)

// Spread is the mean and the standard deviation of a number over repetitions of
// an experiment, such as its seeds.
type Spread struct {
	N        int
	Mean, SD float64 // SD with divisor N−1; 0 for N = 1
}

// SpreadOf is the spread of x. A value that is not finite is an error: a run that
// diverged is not averaged away.
func SpreadOf(x []float64) (Spread, error) {
	if len(x) == 0 {
		return Spread{}, fmt.Errorf("eval: the spread of no values")
	}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Spread{}, fmt.Errorf("eval: value %d of %d is %v: its run has no such result", i, len(x), v)
		}
	}
	mean, sd := moments(x)
	return Spread{len(x), mean, sd}, nil
}
