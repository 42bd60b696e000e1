package vagesbias

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// scene is one θ and one v.
type scene struct {
	v       []float64
	w       []float64 // (d_v, d_h)
	c       []float64 // (d_h)
	kappa   []float64 // (d_h), of a Gaussian h; nil for units
	squares []float64 // ‖W_j‖²
	along   []float64 // vᵀW_j
}

// newScene is a scene; kappa is nil for units.
func newScene(v, w, c, kappa []float64) scene {
	s := scene{v: v, w: w, c: c, kappa: kappa, squares: make([]float64, len(c)), along: make([]float64, len(c))}
	for i, x := range v {
		for j := range c {
			y := w[i*len(c)+j]
			s.squares[j] += y * y
			s.along[j] += x * y
		}
	}
	return s
}

// moments are those of independent h: means and variances.
type moments struct{ mean, variance []float64 }

// apart is q's moments less the posterior's.
type apart struct {
	mean, variance, both []float64 // both is of mean times variance
}

func (q moments) less(p moments) apart {
	n := len(q.mean)
	d := apart{make([]float64, n), make([]float64, n), make([]float64, n)}
	for j := range n {
		d.mean[j] = q.mean[j] - p.mean[j]
		d.variance[j] = q.variance[j] - p.variance[j]
		d.both[j] = q.mean[j]*q.variance[j] - p.mean[j]*p.variance[j]
	}
	return d
}

// vaes is the squared length of E_q[s] − ∇_v log p(v).
func (s scene) vaes(d apart) (sum float64) {
	for i := range s.v {
		e := 0.0
		for j, m := range d.mean {
			e += s.w[i*len(d.mean)+j] * m
		}
		sum += e * e
	}
	return sum
}

// vages is that of E_q[∂s/∂θ] + Cov_q(s, ∂log p̃/∂θ) − ∂∇_v log p(v)/∂θ, a matrix of
// (d_v, |θ|). Entry (i; W_kj) is δ_ik Δmⱼ + v_k W_ij ΔVⱼ, (i; cⱼ) is W_ij ΔVⱼ, and
// (i; κⱼ), whose ∂log p̃ is −½hⱼ², is −W_ij Δ(mV)ⱼ; b and σ meet no h.
func (s scene) vages(d apart) (sum float64) {
	square := 0.0
	for _, x := range s.v {
		square += x * x
	}
	for j, m := range d.mean {
		v := d.variance[j]
		sum += float64(len(s.v))*m*m + 2*m*v*s.along[j] + (1+square)*s.squares[j]*v*v
		if s.kappa != nil {
			sum += s.squares[j] * d.both[j] * d.both[j]
		}
	}
	return sum
}

// norm2 is ‖W‖², the largest eigenvalue of WᵀW.
func (s scene) norm2() (float64, error) {
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(len(s.v), len(s.c), s.w), mat.SVDNone) {
		return 0, errors.New("the singular values of W cannot be had")
	}
	largest := svd.Values(nil)[0]
	return largest * largest, nil
}
