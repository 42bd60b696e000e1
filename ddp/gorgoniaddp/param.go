package gorgoniaddp

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A Param is a named parameter and its gradient in memory that belongs to the
// caller, in the form gorgonia's Solvers step. It implements
// gorgonia.ValueGrad and gorgonia.Namer. The exceptions are gorgonia's AdamW,
// which panics on anything but a *gorgonia.Node (and leaves that unchanged),
// and its BarzilaiBorweinSolver on float32, whose Step returns an error.
type Param struct {
	name        string
	value, grad *tensor.Dense
}

// NewParam is the parameter name of the given shape over value and grad, which
// it shares and does not copy: both are row-major and hold one element for
// each position of shape. A Solver's Step changes value where it lies, uses
// grad as scratch memory and leaves it zero.
func NewParam[T float32 | float64](name string, shape []int, value, grad []T) (*Param, error) {
	size := 1
	for _, d := range shape {
		if d < 1 {
			return nil, fmt.Errorf("gorgoniaddp: parameter %q: want every dimension >= 1, got shape %v", name, shape)
		}
		size *= d
	}
	if len(value) != size || len(grad) != size {
		return nil, fmt.Errorf("gorgoniaddp: parameter %q: want %d elements for shape %v, got %d values and %d gradients",
			name, size, shape, len(value), len(grad))
	}
	if len(shape) == 0 {
		shape = []int{1} // Solvers handle a tensor of one element, not a scalar tensor
	}
	over := func(x []T) *tensor.Dense {
		return tensor.New(tensor.WithShape(slices.Clone(shape)...), tensor.WithBacking(x))
	}
	return &Param{name: name, value: over(value), grad: over(grad)}, nil
}

// Name is the parameter's name.
func (p *Param) Name() string { return p.name }

// Value is the *tensor.Dense over the parameter.
func (p *Param) Value() gorgonia.Value { return p.value }

// Grad is the *tensor.Dense over the gradient. The error is always nil.
func (p *Param) Grad() (gorgonia.Value, error) { return p.grad, nil }

var (
	_ gorgonia.ValueGrad = (*Param)(nil)
	_ gorgonia.Namer     = (*Param)(nil)
)
