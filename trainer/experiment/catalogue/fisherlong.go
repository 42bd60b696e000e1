package catalogue

import (
	"fmt"
	"strconv"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// fisherLong is the critic of fisher on the exact score with what it takes to converge, see
// DESIGN.md of package fisher: more samples than it can learn by heart, a rate with which its
// weights get as large as the model's, and time, so many times the published steps.
func fisherLong(d, times int) plan.Experiment {
	const near = 1 / 0.9
	preset := fmt.Sprintf("fisher-%d", d)
	var rows []plan.Row
	var names []string
	checks := []judge.Check{nothing("exact-0", d)}
	for _, rho := range rhos() {
		name := "exact-" + rho
		rows = append(rows, plan.Row{Name: name, Preset: preset, Flags: map[string]string{"rho": rho, "estimator": "exact"}})
		names = append(names, name)
		if rho != "0" {
			checks = append(checks, belowTruth(name, aboveTruth),
				judge.Ratio{Of: judge.Value{Row: name, Measure: "truth"}, To: judge.Value{Row: name, Measure: "critic"}, Most: near})
		}
	}
	return plan.Experiment{
		Name: preset + "-long",
		About: "The critic of " + preset + " on the exact score with 25 times the samples, " + strconv.Itoa(times) + " times the steps and fifteen times the rate, so that it converges: " +
			"an estimate is within a tenth of the truth for every ρ, and not above it but for noise.",
		Source:   "nothing published in numbers; the truth is computed on the same test data",
		Data:     &plan.DataSet{Name: fmt.Sprintf("gauss-%d-many", d), Builtin: fmt.Sprintf("gauss:dim=%d,modes=1,sd=1,train=400000,val=2000,test=2000", d)},
		Seeds:    []uint64{1},
		Flags:    map[string]string{"steps": strconv.Itoa(times * 20_000), "lr": "3e-3"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Curves:   []plan.Curve{{Name: "loss", Loss: "loss"}},
		Columns:  []string{"critic", "truth", "step", "step-ms", "cpu-s"},
		Rows:     rows,
		Checks:   append(checks, judge.Order{Rising: judge.Rows("critic", names...)}),
	}
}
