package svm

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// newton solves H·s = −∇P by conjugate gradients until the residual, in the norm
// of the preconditioner, is tol of the gradient. Any s it gives goes down.
func (p *problem) newton(s []float64, tol float64) {
	n := len(s)
	r, z, d, hd := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for j := range s {
		s[j], r[j] = 0, -p.grad[j]
		z[j] = r[j] / p.diag[j]
	}
	copy(d, z)
	rz := floats.Dot(r, z)
	goal := tol * tol * rz
	for k := 0; k < 4*n && rz > goal; k++ { // n suffice but for rounding
		p.hessian(hd, d)
		alpha := rz / floats.Dot(d, hd)
		floats.AddScaled(s, alpha, d)
		floats.AddScaled(r, -alpha, hd)
		floats.DivTo(z, r, p.diag)
		old := rz
		rz = floats.Dot(r, z)
		floats.AddScaledTo(d, z, rz/old, d)
	}
}

// hessian is dst = H·v with H = I + 2C Σ x̃ᵢx̃ᵢᵀ over examples with a loss.
func (p *problem) hessian(dst, v []float64) {
	copy(dst, v)
	for _, i := range p.support {
		p.add(dst, 2*p.o.C*p.dot(i, v), i)
	}
}

// search finds the minimum of P along w + t·s, t > 0, where change is the change
// of the margins with t. The derivative in t is continuous, increasing and
// piecewise linear, so Newton's method between bounds finds its root in the piece
// that holds it, exactly.
func (p *problem) search(s, change []float64) (float64, error) {
	ws, ss := floats.Dot(p.w, s), floats.Dot(s, s)
	slope := func(t float64) (first, second float64) {
		first, second = ws+t*ss, ss
		for i, e := range change {
			if xi := 1 - p.margin[i] - t*e; xi > 0 {
				first -= 2 * p.o.C * e * xi
				second += 2 * p.o.C * e * e
			}
		}
		return first, second
	}
	down, _ := slope(0)
	lo, hi, t := 0.0, math.Inf(1), 1.0
	for range 200 {
		first, second := slope(t)
		if math.Abs(first) <= 1e-13*math.Abs(down) {
			return t, nil
		}
		if first < 0 {
			lo = t
		} else {
			hi = t
		}
		next := t - first/second
		if !(next > lo && next < hi) { // a kink is in between
			next = lo + (min(hi, 2*lo+1)-lo)/2
		}
		if next == t || next == lo || next == hi { // no number is in between
			return next, nil
		}
		t = next
	}
	return 0, fmt.Errorf("no minimum along a step: the slope is %v at its beginning", down)
}
