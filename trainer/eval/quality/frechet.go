package quality

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Gaussian is the mean and the covariance of features, of which a Fréchet distance
// knows nothing else.
type Gaussian struct {
	N    int // samples that it was fitted to
	Mean []float64
	Cov  *mat.SymDense // unbiased: with divisor N−1
}

// FitGaussian is the Gaussian of some features.
func FitGaussian(m Matrix) (Gaussian, error) {
	if err := m.check("a covariance", 2); err != nil {
		return Gaussian{}, err
	}
	g := Gaussian{N: m.N, Mean: m.Mean(), Cov: mat.NewSymDense(m.D, nil)}
	centred := m.less(g.Mean)
	g.Cov.SymOuterK(1/float64(m.N-1), mat.NewDense(m.N, m.D, centred.X).T())
	return g, nil
}

// Frechet is the squared Fréchet distance of two Gaussians,
//
//	‖μ₁−μ₂‖² + Tr(C₁ + C₂ − 2(C₁C₂)^½)
//
// [Dowson and Landau 1982; Heusel et al. 2017]. The trace of the root is the sum
// of the roots of the eigenvalues of C₁^½·C₂·C₁^½, which is symmetric, so no
// complex number appears; eigenvalues that rounding made negative count as 0.
func Frechet(a, b Gaussian) (float64, error) {
	if len(a.Mean) != len(b.Mean) {
		return 0, fmt.Errorf("quality: a Fréchet distance of %d features and %d", len(a.Mean), len(b.Mean))
	}
	root, err := squareRoot(a.Cov)
	if err != nil {
		return 0, err
	}
	d := len(a.Mean)
	var half, between mat.Dense
	half.Mul(root, b.Cov)
	between.Mul(&half, root)
	values, err := eigenvalues(symmetric(&between))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i := range d {
		gap := a.Mean[i] - b.Mean[i]
		sum += gap*gap + a.Cov.At(i, i) + b.Cov.At(i, i) - 2*math.Sqrt(max(0, values[i]))
	}
	return max(0, sum), nil // of equal ones rounding may leave a little less
}

var errEigen = errors.New("quality: the eigenvalues of a covariance were not found")

func eigenvalues(s *mat.SymDense) ([]float64, error) {
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		return nil, errEigen
	}
	return e.Values(nil), nil
}

// squareRoot is the symmetric root of a covariance.
func squareRoot(s *mat.SymDense) (*mat.SymDense, error) {
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		return nil, errEigen
	}
	values := e.Values(nil)
	for i, v := range values {
		values[i] = math.Sqrt(max(0, v))
	}
	var vectors, scaled, root mat.Dense
	e.VectorsTo(&vectors)
	scaled.Mul(&vectors, mat.NewDiagDense(len(values), values))
	root.Mul(&scaled, vectors.T())
	return symmetric(&root), nil
}

// symmetric is the symmetric part of a square matrix.
func symmetric(m *mat.Dense) *mat.SymDense {
	n, _ := m.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (m.At(i, j)+m.At(j, i))/2)
		}
	}
	return s
}
