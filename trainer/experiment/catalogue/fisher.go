package catalogue

import (
	"fmt"
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// aboveTruth is by how much an estimate may pass the truth on 2,000 samples, which both see
// alike.
const aboveTruth = 1.01

func rhos() []string { return []string{"0", "0.2", "0.4", "0.6", "0.8", "1"} }

// belowTruth is what a supremum demands of a row: its estimate is at most so many times the
// truth.
func belowTruth(row string, most float64) judge.Check {
	return judge.Ratio{Of: judge.Value{Row: row, Measure: "critic"}, To: judge.Value{Row: row, Measure: "truth"}, Most: most}
}

// nothing is what a row of ρ = 0 must estimate: 0, but for a hundredth for each dimension.
// At ρ = 0.2 the divergence is two and more for each.
func nothing(row string, d int) judge.Check {
	noise := float64(d) / 100
	return judge.Bound{Of: judge.Rows("critic", row), Lo: -noise, Hi: noise}
}

// fisher is the critic of the Fisher divergence on N(0, I) of d dimensions, of models
// with the perturbations ρ = 0, 0.2, … 1, as published.
func fisher(d int) plan.Experiment {
	const biased = 1.05 // with VaES, whose sum over latents is the score of the marginal but for q's error
	preset := fmt.Sprintf("fisher-%d", d)
	var rows []plan.Row
	var checks []judge.Check
	add := func(kind, estimator string, most float64) {
		var names []string
		for _, rho := range rhos() {
			name := kind + "-" + rho
			row := plan.Row{Name: name, Preset: preset, Flags: map[string]string{"rho": rho, "estimator": estimator}}
			if estimator == "exact" {
				row.Lacks = []string{"gap"}
			}
			rows, names = append(rows, row), append(names, name)
			if rho == "0" {
				checks = append(checks, nothing(name, d))
				continue
			}
			checks = append(checks, belowTruth(name, most))
		}
		checks = append(checks, judge.Order{Rising: judge.Rows("critic", names...)})
	}
	add("exact", "exact", aboveTruth)
	add("vaes", "variational", biased)
	checks = append(checks, judge.Bound{Of: judge.Rows("truth", "exact-0", "vaes-0"), Lo: 0, Hi: math.SmallestNonzeroFloat64})
	return plan.Experiment{
		Name: preset,
		About: fmt.Sprintf("The Fisher divergence of a Gaussian RBM of %d + %d units from N(0, I), its parameters perturbed by N(0, ρ²), as a critic of three layers estimates it (VaGES, the appendix on Fisher divergences): "+
			"from the exact score, and from the variational estimate of it (VaES) with one latent. It is a supremum, so an estimate does not pass the truth but for noise; it rises with ρ, and is 0 at ρ = 0. With these samples, steps and rate the critic has not converged where ρ is large; fisher-%d-long has more of each.", d, d, d),
		Source:   "nothing published in numbers; the truth is computed on the same test data",
		Data:     &plan.DataSet{Name: fmt.Sprintf("gauss-%d", d), Builtin: fmt.Sprintf("gauss:dim=%d,modes=1,sd=1,train=16000,val=2000,test=2000", d)},
		Seeds:    []uint64{1},
		Flags:    map[string]string{"steps": "20000"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Curves:   []plan.Curve{{Name: "loss", Loss: "loss"}},
		Columns:  []string{"critic", "truth", "gap", "step", "step-ms", "cpu-s"},
		Rows:     rows,
		Checks:   checks,
		Figures:  []plan.Figure{{File: "loss", Title: "Minus the critic's objective", X: "steps", Y: "loss", Curve: "loss"}},
	}
}
