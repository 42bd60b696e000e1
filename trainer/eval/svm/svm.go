// Package svm is the linear support vector machine that probes features: the
// objective of scikit-learn's LinearSVC with its defaults [ALGORITHMS.md §2.3].
// For each class against the rest, labels yᵢ = ±1, it is the minimum over w and b
// of
//
//	P(w, b) = ½(‖w‖² + b²) + C Σᵢ max(0, 1 − yᵢ(wᵀxᵢ + b))²,  C = 1
//
// a sum over examples, not a mean. The intercept b is regularised like a weight,
// as LIBLINEAR does with intercept_scaling 1: it is the weight of a feature that
// is always 1. LinearSVC does not standardise features, and neither does Fit;
// the result depends on their scale.
//
// P is strongly convex and once differentiable. It is minimised by Newton steps
// of its generalised Hessian (see newton.go). A solution carries its certificate:
// with αᵢ = 2C·max(0, 1 − yᵢ(wᵀxᵢ + b)), which is feasible for the dual, the gap
// between P and the dual's value is ½‖∇P‖², and ‖∇P‖ bounds the distance of
// (w, b) from the minimum.
//
// Everything is float64. Classes are fitted side by side, each by one goroutine
// in a fixed order of operations, so the same examples give the same bits on any
// number of cores. The functions keep no state.
package svm

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/floats"

	"ebtrain/trainer/eval"
)

// Examples are N rows of Dim features with their labels.
type Examples struct {
	X      []float64 // (N, Dim), row-major
	Dim    int
	Labels []int // (N), from 0
}

// N is the number of examples.
func (e Examples) N() int { return len(e.Labels) }

func (e Examples) row(i int) []float64 { return e.X[i*e.Dim : (i+1)*e.Dim] }

// Options are the settings of Fit. The zero value is LinearSVC's objective,
// solved to eight digits.
type Options struct {
	C float64 // weight of the losses; 0 means 1
	// Tolerance says when a class is solved: the norm of the gradient is that
	// fraction of the norm at w = 0 at most, and the duality gap that fraction of P,
	// or rounding allows no less. 0 means 1e-8.
	Tolerance float64
}

// Model is a fitted machine. It is not changed by its methods.
type Model struct {
	W   []float64 // (classes, Dim), row-major
	B   []float64 // (classes)
	Dim int
}

// Fit trains one machine for each class 0 … classes−1 against the rest. Every
// class must have an example.
func Fit(e Examples, classes int, o Options) (*Model, error) {
	if o.C == 0 {
		o.C = 1
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-8
	}
	if err := errors.Join(o.check(), e.check(classes)); err != nil {
		return nil, err
	}
	m := &Model{W: make([]float64, classes*e.Dim), B: make([]float64, classes), Dim: e.Dim}
	errs := make([]error, classes)
	free := make(chan struct{}, runtime.GOMAXPROCS(0)) // bounds the memory in use
	var wg sync.WaitGroup
	for k := range classes {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			p := newProblem(e, k, o)
			if errs[k] = p.solve(); errs[k] != nil {
				errs[k] = fmt.Errorf("svm: class %d: %w", k, errs[k])
				return
			}
			copy(m.W[k*e.Dim:], p.w[:e.Dim])
			m.B[k] = p.w[e.Dim]
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

func (o Options) check() error {
	if !(o.C > 0) || math.IsInf(o.C, 1) || !(o.Tolerance > 0 && o.Tolerance < 1) {
		return fmt.Errorf("svm: C %v and tolerance %v, expected a finite C above 0 and a tolerance between 0 and 1", o.C, o.Tolerance)
	}
	return nil
}

func (e Examples) check(classes int) error {
	switch {
	case e.Dim < 1 || e.N() < 1:
		return fmt.Errorf("svm: %d examples of %d features, expected at least one of each", e.N(), e.Dim)
	case len(e.X) != e.N()*e.Dim:
		return fmt.Errorf("svm: %d values, expected %d: %d examples of %d features", len(e.X), e.N()*e.Dim, e.N(), e.Dim)
	case classes < 2:
		return fmt.Errorf("svm: %d class(es), expected at least 2 to tell apart", classes)
	}
	if err := e.checkLabels(classes); err != nil {
		return err
	}
	for i, v := range e.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return eval.NotFinite("svm: feature %d of example %d is %v, expected a finite number", i%e.Dim, i/e.Dim, v)
		}
	}
	return nil
}

func (e Examples) checkLabels(classes int) error {
	count := make([]int, classes)
	for i, c := range e.Labels {
		if c < 0 || c >= classes {
			return fmt.Errorf("svm: the label of example %d is %d, expected 0 to %d", i, c, classes-1)
		}
		count[c]++
	}
	for c, n := range count {
		switch n {
		case e.N():
			return fmt.Errorf("svm: all %d examples are of class %d, expected some of each of %d classes", n, c, classes)
		case 0:
			if count[e.Labels[0]] < e.N() { // else the sentence above is clearer
				return fmt.Errorf("svm: class %d of %d has no example: use more examples, or number only the classes that occur", c, classes)
			}
		}
	}
	return nil
}

// Decide writes the value wᵀx + b of each class to dst, (classes).
func (m *Model) Decide(dst, x []float64) {
	for k, b := range m.B {
		dst[k] = floats.Dot(m.W[k*m.Dim:(k+1)*m.Dim], x) + b
	}
}

// Predict is the class of each row of x (N, Dim): that of the largest value, of
// equal ones the first.
func (m *Model) Predict(x []float64) ([]int, error) {
	if len(x)%m.Dim != 0 {
		return nil, fmt.Errorf("svm: %d values are not whole rows of %d features", len(x), m.Dim)
	}
	out := make([]int, len(x)/m.Dim)
	values := make([]float64, len(m.B))
	for i := range out {
		m.Decide(values, x[i*m.Dim:(i+1)*m.Dim])
		if floats.HasNaN(values) {
			return nil, eval.NotFinite("svm: a feature of example %d is not a finite number", i)
		}
		out[i] = floats.MaxIdx(values)
	}
	return out, nil
}

// Accuracy is the fraction of examples whose class is predicted.
func (m *Model) Accuracy(e Examples) (float64, error) {
	if e.Dim != m.Dim || e.N() == 0 || len(e.X) != e.N()*e.Dim {
		return 0, fmt.Errorf("svm: %d labels and %d values in rows of %d features, expected at least one example of %d features", e.N(), len(e.X), e.Dim, m.Dim)
	}
	got, err := m.Predict(e.X)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, c := range e.Labels {
		if got[i] == c {
			right++
		}
	}
	return float64(right) / float64(e.N()), nil
}
