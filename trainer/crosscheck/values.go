package main

import (
	"math"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// array is a tensor as it is written.
type array struct {
	Shape []int     `json:"shape"`
	Role  string    `json:"role,omitempty"` // of a variable: weight, moment, buffer, scratch
	X     []float64 `json:"x"`              // row by row
}

func arrayOf(t *exec.Tensor) array {
	x := make([]float64, t.Type.Shape.Len())
	for i := range x {
		x[i] = t.At(i)
	}
	return array{Shape: t.Type.Shape.Slice(), X: x}
}

// arraysOf is all variables by name.
func arraysOf(vars exec.Vars, specs []nn.Variable) (map[string]array, error) {
	out := map[string]array{}
	for _, s := range specs {
		t, err := vars.Get(s.Name)
		if err != nil {
			return nil, err
		}
		a := arrayOf(t)
		a.Role = s.Role.String()
		out[s.Name] = a
	}
	return out, nil
}

// initialised is the variables at their first values, with all weights moved off what
// is special about these (zeros, ones, equal signs); moved says which others are, too.
func (u *unit) initialised(b *ref.Backend, moved func(name string) bool) (exec.Vars, error) {
	vars := b.NewVars()
	if err := nn.Initialise(vars, u.specs, 7); err != nil {
		return nil, err
	}
	for _, s := range u.specs {
		if s.Role != nn.Weight && !moved(s.Name) {
			continue
		}
		t, err := vars.Get(s.Name)
		if err != nil {
			return nil, err
		}
		for i := range t.Type.Shape.Len() {
			t.SetAt(i, t.At(i)*1.5+0.03*math.Sin(float64(i)*1.7+float64(len(s.Name))))
		}
		if err := vars.Set(s.Name, t); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

// running says whether a variable is a running statistic of a batch norm.
func running(name string) bool {
	return strings.HasSuffix(name, "running_mean") || strings.HasSuffix(name, "running_var")
}

// fill gives a program its inputs: pictures that are a smooth function of their place and of step, in
// (0, 1), the case's sentences, and the key of all random numbers, with step and place in it.
func (u *unit) fill(p exec.Program, step, place int64) {
	if in := p.Input(algo.InputImages); in != nil {
		x := in.F32()
		for i := range x {
			x[i] = float32(0.5 + 0.45*math.Sin(float64(i)*0.7+float64(step)*1.3+math.Sqrt(float64(i))*3))
		}
	}
	if in := p.Input(algo.InputTokens); in != nil {
		copy(in.I32(), u.Tokens)
	}
	if in := p.Input(algo.InputLengths); in != nil {
		copy(in.I32(), u.Lengths)
	}
	if in := p.Input(algo.InputKey); in != nil {
		copy(in.I64(), []int64{11, step, place})
	}
}
