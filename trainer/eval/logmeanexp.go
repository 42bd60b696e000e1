package eval

import (
	"fmt"
	"math"
)

// LogMean is an estimate of log E[w] from positive weights w whose logarithms are
// known: a normaliser by annealed importance sampling, log Z from log weights
// [ALGORITHMS.md §2.2].
type LogMean struct {
	N int
	// Value is log (1/N Σ w). The mean is unbiased, so its logarithm is too low on
	// average (Jensen), by about SE²/2.
	Value float64
	// SE is Value's standard error by the delta method, sd(w)/(√N·mean(w)); NaN for
	// one weight. It holds while it is well below 1: where few weights make up the
	// mean (see ESS), neither it nor Value can be trusted.
	SE float64
	// ESS is the effective number of weights, (Σ w)²/Σ w², from 1 to N.
	ESS float64
}

// LogMeanExp is the logarithm of the mean of exp(l) for log weights l, computed
// without overflow. −Inf is a weight of 0; NaN, +Inf, no weights, and weights
// that are all 0 are errors.
func LogMeanExp(logw []float64) (LogMean, error) {
	most := math.Inf(-1)
	for i, l := range logw {
		if math.IsNaN(l) || math.IsInf(l, 1) {
			return LogMean{}, NotFinite("eval: log weight %d of %d is %v: take more steps, or look whether the model has diverged", i, len(logw), l)
		}
		most = max(most, l)
	}
	if math.IsInf(most, -1) {
		return LogMean{}, fmt.Errorf("eval: the mean of %d weights, none above 0, has no logarithm", len(logw))
	}
	w, square := make([]float64, len(logw)), 0.0
	for i, l := range logw {
		w[i] = math.Exp(l - most)
		square += w[i] * w[i]
	}
	n := float64(len(w))
	mean, sd := moments(w)
	m := LogMean{N: len(w), Value: most + math.Log(mean), SE: math.NaN(), ESS: n * mean * n * mean / square}
	if len(w) > 1 {
		m.SE = sd / (math.Sqrt(n) * mean)
	}
	return m, nil
}
