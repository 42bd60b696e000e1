package catalogue

import (
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func timing() plan.Experiment {
	// The paper has seconds for 100 iterations on a GTX 1080 Ti; ten times that
	// are milliseconds a step.
	row := func(name, n, k string, ms float64) plan.Row {
		return plan.Row{Name: name, Preset: "bism-frey", Flags: map[string]string{"unroll": n, "lower-steps": k}, Expect: map[string]judge.Number{"step-ms": {Value: ms}}}
	}
	single := func(name, preset string, ms float64) plan.Row {
		return plan.Row{Name: name, Preset: preset, Expect: map[string]judge.Number{"step-ms": {Value: ms}}}
	}
	const linear = 0.15
	return plan.Experiment{
		Name: "time",
		About: "The time of a step on Frey faces (BiSM, Table 3), one thread, one run at a time: linear in the steps of the lower level, K, and in the unrolled ones, N. " +
			"Counted in matrix products, N = 10 is 84 to the 20 of N = 0: 4.2 times, so a ratio below that has something else in both, as a GPU's launches in the paper's 3.2.",
		Source:  "BiSM, Table 3, on a GTX 1080 Ti",
		Data:    freyData(),
		Seeds:   []uint64{1},
		Alone:   true,
		Flags:   map[string]string{"steps": "400", "log-every": "1"},
		Columns: []string{"step-ms"},
		Rows: []plan.Row{
			single("dsm", "sm-frey", 13.3),
			row("n-0", "0", "5", 43.5), row("n-1", "1", "5", 50.7), row("n-5", "5", "5", 86.1), row("n-10", "10", "5", 137.8),
			row("k-1", "5", "1", 73.0), row("k-2", "5", "2", 77.5), row("k-10", "5", "10", 108.2),
		},
		Checks: []judge.Check{
			judge.Linear{Of: judge.Rows("step-ms", "n-0", "n-1", "n-5", "n-10"), X: []float64{0, 1, 5, 10}, Within: linear},
			judge.Linear{Of: judge.Rows("step-ms", "k-1", "k-2", "n-5", "k-10"), X: []float64{1, 2, 5, 10}, Within: linear},
			judge.Ratio{Of: judge.Value{Row: "n-10", Measure: "step-ms"}, To: judge.Value{Row: "n-0", Measure: "step-ms"}, Most: 3.5},
		},
	}
}
