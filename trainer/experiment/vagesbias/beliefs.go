package vagesbias

import (
	"math"
	"slices"
)

// belief is q(h|v) at the v of a scene, as what its linear layer gives for each h: the
// logits of units, or means and then ½log V.
type belief []float64

// posterior is p(h|v).
func (s scene) posterior() belief {
	n := len(s.c)
	q := make(belief, n, 2*n)
	for j := range n {
		q[j] = s.along[j] + s.c[j]
	}
	if s.kappa == nil {
		return q
	}
	q = q[:2*n]
	for j, k := range s.kappa {
		q[j] /= k
		q[n+j] = -0.5 * math.Log(k)
	}
	return q
}

// moved is q + eta·direction.
func (q belief) moved(eta float64, direction []float64) belief {
	to := slices.Clone(q)
	for i, d := range direction {
		to[i] += eta * d
	}
	return to
}

// moments are those of h ~ q.
func (s scene) moments(q belief) moments {
	n := len(s.c)
	m := moments{make([]float64, n), make([]float64, n)}
	for j := range n {
		if s.kappa == nil {
			m.mean[j] = 1 / (1 + math.Exp(-q[j]))
			m.variance[j] = m.mean[j] / (1 + math.Exp(q[j])) // p(1−p), near 1 too
		} else {
			m.mean[j], m.variance[j] = q[j], math.Exp(2*q[n+j])
		}
	}
	return m
}

// divergence is that of q from the posterior p: of units KL(q‖p), of a Gaussian h
//
//	½E_q‖∇_h log q/p‖² = ½Σⱼ κⱼ²Δmⱼ² + (κⱼ√Vⱼ − 1/√Vⱼ)²
func (s scene) divergence(q, p belief) (sum float64) {
	n := len(s.c)
	for j := range n {
		if s.kappa == nil {
			sum += divergence(q[j], p[j])
			continue
		}
		k, sd := s.kappa[j], math.Exp(q[n+j])
		mean, width := k*(q[j]-p[j]), k*sd-1/sd
		sum += (mean*mean + width*width) / 2
	}
	return sum
}

// divergence is KL(q‖p) of two units with the logits a and b: with x = b − a and
// m = sigmoid(a) it is log(1 + m(eˣ − 1)) − mx, whose terms cancel where x is small.
func divergence(a, b float64) float64 {
	x := b - a
	if a > 0 { // the same with both units' states exchanged, where 1 − m keeps its digits
		a, x = -a, -x
	}
	m := 1 / (1 + math.Exp(-a))
	const near = 1e-3 // where the series is better: its relative error is of the order of x³, rounding's of 1e-16/x²
	if math.Abs(x) < near {
		v := m * (1 - m)
		return v * x * x * (0.5 + (1-2*m)*x/6 + (1-6*v)*x*x/24)
	}
	return math.Log1p(m*math.Expm1(x)) - m*x
}
