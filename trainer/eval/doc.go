// Package eval is the statistics of evaluation: reconstruction error and its
// baseline, the distribution of energies, the area under the ROC curve, averages
// over samples, normalisers from log weights, and the spread over seeds. Below it
// package svm probes features, and packages quality, feature, control and compare
// judge samples beside data.
//
// Sums are float64. The accumulators SquaredError, MeanImage and Average expose their
// sums as one vector each, so that ranks add them with a single all-reduce in
// place:
//
//	var e eval.SquaredError
//	e.Add(reconstruction, image) // this rank's part
//	// all-reduce (sum) of e.Sums(), in place
//	rmse := e.RMSE()             // of all ranks
//
// An accumulator belongs to one goroutine; the functions keep no state.
package eval
