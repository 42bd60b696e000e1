package exectest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// tensors are named values.
type tensors map[string]*exec.Tensor

// session is a program with its variables, ready to run.
type session struct {
	vars exec.Vars
	prog exec.Program
}

// openSession compiles g with variables vars.
func openSession(be exec.Backend, g *graph.Graph, vars tensors, comm collective.Comm) (*session, error) {
	s := &session{vars: be.NewVars()}
	for name, t := range vars {
		if err := s.vars.Set(name, t); err != nil {
			return nil, err
		}
	}
	reduced, err := be.Connect(context.Background(), comm)
	if err != nil {
		return nil, err
	}
	s.prog, err = be.Compile(g, exec.Options{Name: "test", Vars: s.vars, Comm: reduced})
	return s, err
}

// run fills the inputs, runs, and copies the outputs.
func (s *session) run(g *graph.Graph, inputs tensors) (tensors, error) {
	return s.runContext(context.Background(), g, inputs)
}

func (s *session) runContext(ctx context.Context, g *graph.Graph, inputs tensors) (tensors, error) {
	for name, t := range inputs {
		if in := s.prog.Input(name); in != nil {
			copy(in.Bytes(), t.Bytes())
		}
	}
	if err := exec.Run(ctx, s.prog); err != nil {
		return nil, err
	}
	out := tensors{}
	for _, o := range g.Outputs() {
		t := s.prog.Output(o.Name)
		if t == nil {
			return nil, fmt.Errorf("output %q: none", o.Name)
		}
		if t.Type != g.Type(o.ID) {
			return nil, fmt.Errorf("output %q is %v, want %v", o.Name, t.Type, g.Type(o.ID))
		}
		out[o.Name] = clone(t)
	}
	return out, nil
}

// evaluate compiles and runs once.
func evaluate(be exec.Backend, g *graph.Graph, vars, inputs tensors) (out tensors, err error) {
	s, err := openSession(be, g, vars, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.prog.Close()) }()
	return s.run(g, inputs)
}

func clone(t *exec.Tensor) *exec.Tensor {
	c := exec.NewTensor(t.Type)
	copy(c.Bytes(), t.Bytes())
	return c
}

// near compares got with want element by element; bound(i) is how far element
// i may be off.
func near(name string, got, want *exec.Tensor, bound func(i int) float64) error {
	if got.Type != want.Type {
		return fmt.Errorf("output %q is %v, want %v", name, got.Type, want.Type)
	}
	if got.Type.DType == graph.I64 {
		for i, v := range got.I64() {
			if v != want.I64()[i] {
				return fmt.Errorf("output %q %v, element %d: got %d, want %d", name, got.Type, i, v, want.I64()[i])
			}
		}
		return nil
	}
	for i := range got.Type.Shape.Len() {
		g, w := got.At(i), want.At(i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if off := math.Abs(g - w); !(off <= bound(i)) || math.IsInf(off, 0) {
			return fmt.Errorf("output %q %v, element %d: got %.9g, want %.9g: off by %.2g, may be %.2g", name, got.Type, i, g, w, off, bound(i))
		}
	}
	return nil
}

// sameBits says where two tensors differ, if they do.
func sameBits(what, name string, a, b *exec.Tensor) error {
	for i, v := range a.Bytes() {
		if v != b.Bytes()[i] {
			k := i / a.Type.DType.Size()
			return fmt.Errorf("%s: %q %v, element %d: %v became %v", what, name, a.Type, k, b.At(k), a.At(k))
		}
	}
	return nil
}

// largest is the largest magnitude in t.
func largest(t *exec.Tensor) float64 {
	m := 0.0
	for i := range t.Type.Shape.Len() {
		m = max(m, math.Abs(t.At(i)))
	}
	return m
}

// farthest is the largest difference between two tensors of one shape.
func farthest(a, b *exec.Tensor) float64 {
	m := 0.0
	for i := range a.Type.Shape.Len() {
		m = max(m, math.Abs(a.At(i)-b.At(i)))
	}
	return m
}

// widened is t in float64.
func widened(t *exec.Tensor) *exec.Tensor {
	w := exec.NewTensor(graph.Type{DType: graph.F64, Shape: t.Type.Shape})
	for i := range w.F64() {
		w.SetAt(i, t.At(i))
	}
	return w
}
