package bism

import (
	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
)

// Entries of the report besides algo.ReportStop. The losses are means over the
// global batch.
const (
	reportUpper  = "upper"      // J
	reportLower  = "lower"      // G at the last of the K steps, or the first unrolled one
	reportScaled = "scaled"     // MDSM: J·σ₀⁴, which does not begin near 10⁴ for each value of v
	reportNorm   = "grad_model" // length of the averaged gradient of J
)

// Report are the entries of the report.
func (t trainee) Report() []algo.Column {
	names, shown := []string{reportUpper}, reportUpper
	if t.cfg.Objective == MDSM {
		names, shown = append(names, reportScaled), reportScaled
	}
	if t.cfg.LowerSteps+t.cfg.Unroll > 0 {
		names = append(names, reportLower)
	}
	return algo.Columns(append(names, algo.ReportStop, reportNorm), shown, reportLower)
}

// report is the output OutputReport. What differs between ranks is averaged in
// one small all-reduce.
func (s *step) report(upper graph.ID, grads []graph.ID) {
	row := func(x graph.ID) graph.ID { return s.Reshape(s.Cast(x, graph.F32), graph.D(1)) }
	means := []graph.ID{row(upper)}
	if s.cfg.Objective == MDSM {
		s0 := s.cfg.Sigma0
		means = append(means, row(s.Scale(upper, s0*s0*s0*s0)))
	}
	if s.lowerLoss != 0 {
		means = append(means, row(s.lowerLoss))
	}
	means = append(means, s.Reshape(s.Input(algo.InputStop, graph.T(graph.F32)), graph.D(1)))
	all := s.Concat(0, means...)
	if s.World > 1 {
		all = s.AllReduce(collective.Mean, "losses", all)[0]
	}
	s.Output(algo.OutputReport, s.Concat(0, all, row(s.norm(grads))))
}

// norm is the length of gradients as one vector.
func (s *step) norm(grads []graph.ID) graph.ID {
	sum := s.Zeros(graph.T(s.DType))
	for _, g := range grads {
		sum = s.Add(sum, s.Sum(s.Square(g)))
	}
	return s.Sqrt(sum)
}
