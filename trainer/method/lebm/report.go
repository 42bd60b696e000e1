package lebm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
)

// Entries of the report. All are means over the global batch, but for the lengths of
// the averaged gradients.
const (
	reportRecon           = "recon"            // G's loss, ‖x − G(z⁺)‖²
	reportEnergy          = "energy"           // E's loss, the difference of the two below
	reportPosteriorEnergy = "energy_posterior" // E(z⁺)
	reportPriorEnergy     = "energy_prior"     // E(z⁻)
	reportPosteriorNorm   = "norm_posterior"   // ‖z⁺‖/√d, about 1 for N(0, I)
	reportPriorNorm       = "norm_prior"       // ‖z⁻‖/√d
	reportStop            = algo.ReportStop
)

// gradientOf names the entry that is the length of a network's gradient.
func gradientOf(net string) string { return "grad_" + net }

// Places of the norms in the report, with either prior.
const (
	posteriorNormPlace = 1
	priorNormPlace     = 2
)

// reported are the entries: means, and what all ranks have alike.
func (c Config) reported() (means, same []string) {
	means = []string{reportRecon, reportPosteriorNorm, reportPriorNorm}
	same = []string{gradientOf(generatorNet)}
	if c.Prior == EBM {
		means = append(means, reportEnergy, reportPosteriorEnergy, reportPriorEnergy)
		same = append(same, gradientOf(energyNet))
	}
	return append(means, reportStop), same
}

// Report are the entries of the report.
func (m model) Report() []algo.Column {
	means, same := m.cfg.reported()
	return algo.Columns(append(means, same...), reportRecon, reportEnergy)
}

// write is the output algo.OutputReport.
func (s *step) write() {
	pick := func(names []string) (ids []graph.ID) {
		for _, name := range names {
			ids = append(ids, s.report[name])
		}
		return ids
	}
	means, same := s.cfg.reported()
	algo.WriteReport(s.Context, pick(means), pick(same))
}

// norm is ⟨‖z‖⟩/√d, of squares added in float64: a chain that goes astray has a norm
// for as long as it has latents.
func (s *step) norm(z graph.ID) graph.ID {
	squares := s.Mean(s.Square(s.Cast(z, graph.F64)), 1)
	return s.Cast(s.Mean(s.Sqrt(squares)), s.DType)
}
