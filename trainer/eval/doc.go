// Package eval is the statistics of evaluation: reconstruction error and its
// baseline, the distribution of energies, the area under the ROC curve, averages
// over samples, medians, normalisers from log weights, and the spread over seeds. Below it
// package svm probes features, packages quality, feature, control and compare judge
// samples beside data, inception has the features of published distances, and ngram
// judges sentences.
//
// Sums are float64. The accumulators are SquaredError, MeanImage and Average.
//
// An accumulator belongs to one goroutine; the functions keep no state.
package eval
