package optim

import (
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Average keeps beside each weight that a step moves the exponential moving average of its
// values after all steps so far:
//
//	a_t = Σ βᵗ⁻ˢ w_s / Σ βᵗ⁻ˢ over s = 1 … t,  β = Decay
//
// which is a_t = (1 − r)·a_{t−1} + r·w_t with r = (1 − β)/(1 − βᵗ): the first step's are the
// weights themselves, and initial ones have no part in it.
type Average struct{ Decay float64 }

// averageRate is the graph input that carries r, a scalar of float32.
const averageRate = "average"

// Validate says what is wrong with the decay.
func (a Average) Validate() error {
	if !(a.Decay > 0 && a.Decay < 1) || float32(a.Decay) == 1 {
		return fmt.Errorf("want a decay of averages above 0 and below 1, got %v", a.Decay)
	}
	return nil
}

// Add is the step g of a model of vars, with averages: a variable nn.AverageOf(w), of role
// nn.Average, for each weight w that g assigns. What g computes stays as it is.
func (a Average) Add(g *graph.Graph, vars []nn.Variable) (*graph.Graph, []nn.Variable, error) {
	if err := a.Validate(); err != nil {
		return nil, nil, err
	}
	next := map[string]graph.ID{}
	for _, s := range g.Assigns() {
		if leaf, ok := g.Nodes()[g.NodeOf(s.Var)].Op.(graph.Leaf); ok {
			next[leaf.Name] = s.Value
		}
	}
	b, all := g.Extend(), vars[:len(vars):len(vars)]
	rate := b.Input(averageRate, graph.T(graph.F32))
	b.Scope("average", func() {
		for _, v := range nn.Only(vars, nn.Weight) {
			w, moved := next[v.Name]
			if !moved {
				continue
			}
			name := nn.AverageOf(v.Name)
			all = append(all, nn.Variable{Name: name, Type: v.Type, Role: nn.Average})
			r, old := b.Cast(rate, v.Type.DType), b.Var(name, v.Type)
			b.Assign(old, b.Add(b.Mul(old, b.Shift(b.Neg(r), 1)), b.Mul(w, r)))
		}
	})
	with, err := b.Build()
	return with, all, err
}

// Feeder fills r in p, a step that Add has made. What it returns is told the number of the
// step, from 0.
func (a Average) Feeder(p exec.Program) func(step int64) {
	in := p.Input(averageRate)
	return func(step int64) { in.SetAt(0, (1-a.Decay)/(1-math.Pow(a.Decay, float64(step+1)))) }
}
