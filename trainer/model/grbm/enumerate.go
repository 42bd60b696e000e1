package grbm

import (
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// maxEnumerated is the largest number of hidden units whose states are
// enumerated.
const maxEnumerated = 20

// blockUnits is how many of the hidden units change within a transition of the
// enumeration; the others change from one to the next.
const blockUnits = 12

// LogZ is exact, or by annealed importance sampling.
func (m Machine) LogZ(o algo.LogZOptions) (algo.Normaliser, error) {
	if !o.Exact {
		plan, err := m.anneal(o)
		return algo.Normaliser{Plan: plan}, err
	}
	plan, err := m.enumerate()
	return algo.Normaliser{Plan: plan, Exact: true}, err
}

// enumerate adds up all 2^Hidden states h, in float64 [ALGORITHMS.md §2.2]:
//
//	log Z = Σᵢsᵢ + (Visible/2)log 2π + LSE_h[cᵀh + bᵀWh + ½Σᵢσᵢ²(Wh)ᵢ²]
func (m Machine) enumerate() (chain.Plan, error) {
	if m.Hidden > maxEnumerated {
		return chain.Plan{}, fmt.Errorf("grbm: log Z of %d hidden units cannot be had by enumeration, which takes at most %d: %w (2^%d): estimate it by annealed importance sampling",
			m.Hidden, maxEnumerated, algo.ErrTooMany, m.Hidden)
	}
	total := chain.Var("logz", graph.T(graph.F64, 1))
	total.Init = func(dst []float64, _ graph.Shape, _ philox.Name) { dst[0] = math.Inf(-1) }
	low := min(m.Hidden, blockUnits)
	const input = "states"
	s := stages{machine: m}
	s.add("enumerate", 1<<(m.Hidden-low), func(p exec.Program) func(int) {
		in := p.Input(input)
		return func(i int) { fillStates(in.F64(), m.Hidden, i<<low) }
	}, func(c *nn.Context, g Gibbs) {
		p := g.wide(c)
		weights := p.logWeights(c, c.Input(input, graph.T(graph.F64, 1<<low, m.Hidden)))
		block := c.Add(c.LogSumExp(weights), p.gaussian(c))
		old := c.Var(total.Name, total.Type)
		both := c.Concat(0, old, c.Reshape(block, graph.D(1)))
		c.Assign(old, c.Reshape(c.LogSumExp(both), graph.D(1)))
	})
	return chain.Plan{Vars: []nn.Variable{total}, Stages: s.list, Out: total.Name}, s.err
}

// fillStates writes the states first, first+1, … of that many hidden units as
// rows of 0 and 1, the lowest bit first.
func fillStates(dst []float64, hidden, first int) {
	for i := range dst {
		dst[i] = float64((first + i/hidden) >> (i % hidden) & 1)
	}
}

// wide is p in float64.
func (p Params) wide(c *nn.Context) Params {
	to := func(x graph.ID) graph.ID { return c.Cast(x, graph.F64) }
	return Params{to(p.S), to(p.W), to(p.B), to(p.C)}
}

// gaussian is Σᵢsᵢ + (Visible/2)log 2π, the logarithm of ∫exp(−Σ(v−b)²/(2σ²))dv.
func (p Params) gaussian(c *nn.Context) graph.ID {
	return c.Shift(c.Sum(p.S), float64(c.Batch(p.S))/2*math.Log(2*math.Pi))
}

// logWeights are log ∫exp(−E(v,h))dv for each row of h (n, Hidden), less
// gaussian, (n): hᵀ(c + Wᵀb) + ½hᵀKh with K = Wᵀdiag(σ²)W, which is small.
func (p Params) logWeights(c *nn.Context, h graph.ID) graph.ID {
	visible := c.Batch(p.B)
	slope := c.Add(c.MatMul(c.Reshape(p.B, graph.D(1, visible)), p.W, false, false), p.C)
	scaled := c.Mul(p.W, c.Reshape(c.Exp(p.S), graph.D(visible, 1)))
	curve := c.MatMul(h, c.MatMul(scaled, scaled, true, false), false, false)
	return c.Sum(c.Mul(h, c.Add(slope, c.Scale(curve, 0.5))), 1)
}
