package svm

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Standardise shifts and scales each feature, in place, so that among the examples
// it has mean 0 and standard deviation 1; others have theirs changed by the same
// numbers. A feature that is the same in all examples becomes 0 in all of both.
//
// A machine's C weighs losses against ‖w‖², so features of a small scale are
// weighed less: what a machine of standardised features tells does not depend on
// the scale of any.
func (e Examples) Standardise(others Examples) {
	column := make([]float64, e.N())
	for j := range e.Dim {
		for i := range column {
			column[i] = e.X[i*e.Dim+j]
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		by := 0.0
		// The spread of equal numbers is their mean's rounding, not nothing.
		if sd > 1e-12*math.Abs(mean) {
			by = 1 / sd
		}
		for _, all := range []Examples{e, others} {
			for i := j; i < len(all.X); i += all.Dim {
				all.X[i] = by * (all.X[i] - mean)
			}
		}
	}
}
