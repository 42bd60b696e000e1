package catalogue

import (
	"fmt"
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// fisher is the critic of the Fisher divergence on N(0, I) of d dimensions, of models
// with the perturbations ρ = 0, 0.2, … 1.
func fisher(d int) plan.Experiment {
	noise := float64(d) / 100 // of an estimate of 0, for each dimension a hundredth; at ρ = 0.2 the divergence is two and more
	const (
		above  = 1.01 // of the truth on 2,000 samples, which estimate and truth see alike
		biased = 1.05 // with VaES, whose sum over latents is the score of the marginal but for q's error
		near   = 1 / 0.9
	)
	rhos := []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}
	preset := fmt.Sprintf("fisher-%d", d)
	var rows []plan.Row
	var checks []judge.Check
	add := func(kind, estimator string, most float64) {
		var names []string
		for _, rho := range rhos {
			name := kind + "-" + rho
			row := plan.Row{Name: name, Preset: preset, Flags: map[string]string{"rho": rho, "estimator": estimator}}
			if estimator == "exact" {
				row.Lacks = []string{"gap"}
			}
			rows, names = append(rows, row), append(names, name)
			of := func(measure string) judge.Value { return judge.Value{Row: name, Measure: measure} }
			if rho == "0" {
				checks = append(checks, judge.Bound{Of: judge.Rows("critic", name), Lo: -noise, Hi: noise})
				continue
			}
			checks = append(checks,
				judge.Ratio{Of: of("critic"), To: of("truth"), Most: most},
				judge.Ratio{Of: of("truth"), To: of("critic"), Most: near})
		}
		checks = append(checks, judge.Order{Rising: judge.Rows("critic", names...)})
	}
	add("exact", "exact", above)
	add("vaes", "variational", biased)
	checks = append(checks, judge.Bound{Of: judge.Rows("truth", "exact-0", "vaes-0"), Lo: 0, Hi: math.SmallestNonzeroFloat64})
	return plan.Experiment{
		Name: preset,
		About: fmt.Sprintf("The Fisher divergence of a Gaussian RBM of %d + %d units from N(0, I), its parameters perturbed by N(0, ρ²), as a critic of three layers estimates it (VaGES, the appendix on Fisher divergences): "+
			"from the exact score, and from the variational estimate of it (VaES) with one latent. It is a supremum, so an estimate does not pass the truth but for noise; it rises with ρ, is 0 at ρ = 0, and comes within a tenth where the critic has converged.", d, d),
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
