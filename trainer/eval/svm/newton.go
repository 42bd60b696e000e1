package svm

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// problem is one class against the rest. Vectors of weights have Dim+1 entries,
// the last of which is the intercept.
//
// P is piecewise quadratic: a Newton step of the piece in hand, followed by an
// exact line search, gets from piece to piece and ends in the one with the
// minimum after finitely many steps [Mangasarian 2002; Keerthi and DeCoste, JMLR
// 2005]. Every generalised Hessian I + 2C Σ x̃ᵢx̃ᵢᵀ (over examples with a loss) is
// at least I, so its steps go down. Steps are solved by conjugate gradients,
// with the Hessian's diagonal as preconditioner [Chin, Chu, Lin 2020].
type problem struct {
	e     Examples
	class int
	o     Options

	w       []float64
	grad    []float64
	diag    []float64 // of the Hessian
	margin  []float64 // yᵢw̃ᵀx̃ᵢ
	support []int     // examples with a loss, in order

	primal, gap, norm, start float64
	rounding                 float64 // what norm can be without meaning anything
	steps                    int
}

const (
	maxSteps = 200
	// forcing is how exactly a step is solved at most, relative to its gradient.
	forcing = 0.1
)

func newProblem(e Examples, class int, o Options) *problem {
	p := &problem{e: e, class: class, o: o, margin: make([]float64, e.N())}
	for _, v := range []*[]float64{&p.w, &p.grad, &p.diag} {
		*v = make([]float64, e.Dim+1)
	}
	return p
}

func (p *problem) y(i int) float64 {
	if p.e.Labels[i] == p.class {
		return 1
	}
	return -1
}

var errOverflow = errors.New("the features are too large: their squares overflow; scale them")

// solve goes from w = 0 to the minimum.
func (p *problem) solve() error {
	p.look()
	p.start = p.norm
	direction, change := make([]float64, len(p.w)), make([]float64, p.e.N())
	for ; p.steps < maxSteps; p.steps++ {
		if sum := p.primal + p.gap + p.rounding; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return errOverflow
		}
		if p.solved() {
			return nil
		}
		p.newton(direction, min(forcing, math.Sqrt(p.norm/p.start)))
		for i := range change {
			change[i] = p.y(i) * p.dot(i, direction)
		}
		t, err := p.search(direction, change)
		if err != nil {
			return err
		}
		floats.AddScaled(p.w, t, direction)
		p.look()
	}
	return fmt.Errorf("not solved after %d steps, at a gradient of %.3g from %.3g: scale the features to a like size", maxSteps, p.norm, p.start)
}

func (p *problem) solved() bool {
	tol := p.o.Tolerance
	return p.norm <= p.rounding || p.norm <= tol*p.start && p.gap <= tol*p.primal
}

// dot is x̃ᵢᵀv.
func (p *problem) dot(i int, v []float64) float64 {
	return floats.Dot(p.e.row(i), v[:p.e.Dim]) + v[p.e.Dim]
}

// add is v += a·x̃ᵢ.
func (p *problem) add(v []float64, a float64, i int) {
	floats.AddScaled(v[:p.e.Dim], a, p.e.row(i))
	v[p.e.Dim] += a
}

// look computes all that is known at w.
func (p *problem) look() {
	copy(p.grad, p.w)
	for j := range p.diag {
		p.diag[j] = 1
	}
	p.support = p.support[:0]
	c, loss, terms := p.o.C, 0.0, floats.Norm(p.w, 2)
	for i := range p.margin {
		p.margin[i] = p.y(i) * p.dot(i, p.w)
		if xi := 1 - p.margin[i]; xi > 0 {
			p.support = append(p.support, i)
			loss += xi * xi
			p.add(p.grad, -2*c*xi*p.y(i), i)
			terms += 2 * c * xi * p.square(i)
		}
	}
	p.primal = floats.Dot(p.w, p.w)/2 + c*loss
	p.norm = floats.Norm(p.grad, 2)
	// The dual at α = 2Cξ is Σα − ½‖Σαyx̃‖² − Σα²/(4C), and Σαyx̃ = w − ∇P.
	p.gap = p.norm * p.norm / 2
	p.rounding = 1e-15 * terms
}

// square adds 2C·x̃ᵢ² to the Hessian's diagonal and returns ‖x̃ᵢ‖.
func (p *problem) square(i int) float64 {
	sum := 1.0
	for j, v := range p.e.row(i) {
		p.diag[j] += 2 * p.o.C * v * v
		sum += v * v
	}
	p.diag[p.e.Dim] += 2 * p.o.C
	return math.Sqrt(sum)
}
