package optim

import (
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Rates are what changes from one step of an optimiser to the next, as scalars
// of a graph: lr/(1−β₁ᵗ) and 1/√(1−β₂ᵗ) for Adam, the learning rate for descent,
// which has no use for Correct.
type Rates struct{ Rate, Correct graph.ID }

// Rows declares the input of a graph that takes several steps of optimisers,
// (rows, 2) of the context's type, and returns the rates of each row. SetRow
// fills it.
func Rows(c *nn.Context, name string, rows int) []Rates {
	in := c.Input(name, graph.T(c.DType, rows, 2))
	all := make([]Rates, rows)
	for i := range all {
		entry := func(j int) graph.ID {
			return c.Reshape(c.Slice(c.Slice(in, 0, i, i+1, 1), 1, j, j+1, 1), graph.D())
		}
		all[i] = Rates{entry(0), entry(1)}
	}
	return all
}

// SetRow fills row i of the input that Rows declared.
func SetRow(in *exec.Tensor, i int, rates [2]float64) {
	in.SetAt(2*i, rates[0])
	in.SetAt(2*i+1, rates[1])
}

// RowsFeeder fills before a step of p all n rows of the input that Rows declared under
// name: row i with rates(i, step).
func RowsFeeder(p exec.Program, name string, n int, rates func(i int, step int64) [2]float64) func(step int64, epoch int) {
	in := p.Input(name)
	if in == nil {
		return func(int64, int) {}
	}
	return func(step int64, _ int) {
		for i := range n {
			SetRow(in, i, rates(i, step))
		}
	}
}

// AdamRates are {rate/(1−β₁ᵗ), 1/√(1−β₂ᵗ)} of Adam's step number t, from 1.
func AdamRates(rate, beta1, beta2 float64, t int64) [2]float64 {
	return [2]float64{rate / (1 - math.Pow(beta1, float64(t))), 1 / math.Sqrt(1-math.Pow(beta2, float64(t)))}
}

// DescentRates are those of a step of plain descent.
func DescentRates(rate float64) [2]float64 { return [2]float64{rate, 1} }
