package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/score"
)

// Losses of the report.
const (
	reportUpper = "upper" // the loss of the upper level, at the estimated score
	reportLower = "lower" // G at the last of the K steps
)

// Report are the entries of the report.
func (t trainee) Report() []algo.Column { return t.cfg.report().Columns() }

func (c Config) report() score.Report {
	r := score.Report{Objective: c.Objective, Noise: c.Noise, Loss: reportUpper}
	if c.steps() > 0 {
		r.Others = []string{reportLower}
	}
	return r
}

// report is the output algo.OutputReport.
func (s *step) report(upper graph.ID, grads []graph.ID) {
	var lower []graph.ID
	if s.lowerLoss != 0 {
		lower = append(lower, s.lowerLoss)
	}
	s.cfg.report().Write(s.Context, upper, lower, grads)
}
