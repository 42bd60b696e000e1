package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
)

// Entries of the report besides algo.ReportStop. The losses are means over the
// global batch.
const (
	reportUpper  = "upper"      // the loss of the upper level, at the estimated score
	reportLower  = "lower"      // G at the last of the K steps
	reportScaled = "scaled"     // MDSM: the upper loss times σ₀⁴, which does not begin near 10⁴ for each value of v
	reportNorm   = "grad_model" // length of the averaged gradient
)

// Report are the entries of the report.
func (t trainee) Report() []algo.Column {
	names, shown := []string{reportUpper}, reportUpper
	if t.cfg.Objective == MDSM {
		names, shown = append(names, reportScaled), reportScaled
	}
	if t.cfg.steps() > 0 {
		names = append(names, reportLower)
	}
	return algo.Columns(append(names, algo.ReportStop, reportNorm), shown, reportLower)
}

// report is the output algo.OutputReport.
func (s *step) report(upper graph.ID, grads []graph.ID) {
	means := []graph.ID{upper}
	if s.cfg.Objective == MDSM {
		s0 := s.cfg.Sigma0
		means = append(means, s.Scale(upper, s0*s0*s0*s0))
	}
	if s.lowerLoss != 0 {
		means = append(means, s.lowerLoss)
	}
	means = append(means, s.Input(algo.InputStop, graph.T(graph.F32)))
	algo.WriteReport(s.Context, means, []graph.ID{optim.Norm(s.Context, grads)})
}
