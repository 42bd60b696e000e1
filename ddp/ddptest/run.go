package ddptest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// Values are tensors by name, row-major.
type Values map[string][]float64

// Run compiles g on the reference backend, sets the inputs, runs it once and
// returns its outputs. vars come from NewVars and may be nil; comm is nil in a
// world of one.
func Run(g *graph.Graph, vars exec.Vars, comm collective.Comm, in Values) (out Values, err error) {
	p, err := ref.New().Compile(g, exec.Options{Name: "test", Vars: vars, Comm: comm})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for name, v := range in {
		t := p.Input(name)
		if t == nil {
			continue // the live part of the graph does not read it
		}
		if len(v) != t.Type.Shape.Len() {
			return nil, fmt.Errorf("input %q: got %d numbers for %v", name, len(v), t.Type)
		}
		for i, x := range v {
			t.SetAt(i, x)
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		return nil, err
	}
	out = Values{}
	for _, o := range g.Outputs() {
		out[o.Name] = Numbers(p.Output(o.Name))
	}
	return out, nil
}

// NewVars is an empty set of variables for Run.
func NewVars() exec.Vars { return ref.New().NewVars() }

// Numbers are the elements of t.
func Numbers(t *exec.Tensor) []float64 {
	v := make([]float64, t.Type.Shape.Len())
	for i := range v {
		v[i] = t.At(i)
	}
	return v
}

// Tensor is a tensor of type t with the elements v.
func Tensor(t graph.Type, v []float64) *exec.Tensor {
	x := exec.NewTensor(t)
	for i := range v {
		x.SetAt(i, v[i])
	}
	return x
}

// Noise is n standard normal numbers, other ones for each stream.
func Noise(stream uint32, n int) []float64 {
	v := make([]float64, n)
	philox.Name{Seed: 1, Purpose: philox.Testing, Sample: stream}.Normal(v)
	return v
}

// Near says how got differs from want: an error names the first element with
// |got − want| > tol·(1 + |want|).
func Near(got, want []float64, tol float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("got %d numbers, want %d", len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			return fmt.Errorf("element %d: got %v, want %v (tolerance %g)", i, got[i], want[i], tol)
		}
	}
	return nil
}
