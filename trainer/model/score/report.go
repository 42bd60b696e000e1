package score

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Entries of a Report besides its losses and algo.ReportStop.
const (
	reportScaled = "scaled"     // MDSM: the loss times σ₀⁴, which does not begin near 10⁴ for each value of v
	reportNorm   = "grad_model" // length of the averaged gradient
)

// Report is what a step reports whose loss is of scores. Losses are means over the global
// batch.
type Report struct {
	Objective
	Noise
	Loss   string   // its name
	Others []string // names of other losses
}

// Columns are its entries.
func (r Report) Columns() []algo.Column {
	names, shown := []string{r.Loss}, r.Loss
	if r.Objective == MDSM {
		names, shown = append(names, reportScaled), reportScaled
	}
	names = append(append(names, r.Others...), algo.ReportStop, reportNorm)
	return algo.Columns(names, append([]string{shown}, r.Others...)...)
}

// Write is the output algo.OutputReport of a step with these losses and gradients.
func (r Report) Write(c *nn.Context, loss graph.ID, others, grads []graph.ID) {
	means := []graph.ID{loss}
	if s := r.Sigma0; r.Objective == MDSM {
		means = append(means, c.Scale(loss, s*s*s*s))
	}
	means = append(append(means, others...), c.Input(algo.InputStop, graph.T(graph.F32)))
	algo.WriteReport(c, means, []graph.ID{optim.Norm(c, grads)})
}
