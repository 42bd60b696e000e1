package catalogue

import (
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func board() plan.Experiment {
	const steps, every = "100000", 5000
	good := []string{"dsm", "ssm", "cd-1", "cd-5", "cd-10", "bidsm-5", "bidsm-10", "bissm-5", "bissm-10"}
	all := append([]string{"pcd", "nce", "vnce", "bidsm-0", "bissm-0"}, good...)
	// Three seeds of BiDSM with N = 5 were from 0.29 to 0.33; single numbers are
	// given the same width.
	const width = 0.04
	ll := func(n judge.Number) map[string]judge.Number { return map[string]judge.Number{"ll": n} }
	return plan.Experiment{
		Name: "board",
		About: "The checkerboard of two cells (BiSM, Fig. 2 and 3): a Gaussian RBM with 4 hidden units, trained by eight methods. " +
			"All methods but the bi-level ones with nothing unrolled come near each other; the likelihood is exact, by enumeration, and log 2 = 0.693 is the most there is.",
		Source:   "a PyTorch program of the same specification, 100,000 steps, 3 seeds; the paper has curves only",
		Data:     checkerboardData(),
		Seeds:    []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		Flags:    map[string]string{"steps": steps},
		Evaluate: map[string]string{"split": "test"},
		Curves:   []plan.Curve{{Name: "ll", Measure: "ll", Every: every}},
		Columns:  []string{"ll", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			{Name: "dsm", Preset: "sm-board-dsm", Expect: ll(judge.Number{Value: 0.32, Tol: width})},
			{Name: "ssm", Preset: "sm-board-ssm"},
			{Name: "cd-1", Preset: "cd-board", Flags: map[string]string{"cd-steps": "1"}, Expect: ll(judge.Number{Value: 0.33, Tol: width})},
			{Name: "cd-5", Preset: "cd-board", Flags: map[string]string{"cd-steps": "5"}},
			{Name: "cd-10", Preset: "cd-board", Flags: map[string]string{"cd-steps": "10"}},
			{Name: "pcd", Preset: "pcd-board"},
			{Name: "nce", Preset: "nce-board"},
			{Name: "vnce", Preset: "vnce-board"},
			{Name: "bidsm-0", Preset: "bism-board-dsm", Flags: map[string]string{"unroll": "0"}, Expect: ll(judge.Number{Value: -0.27}), KnownBad: true},
			{Name: "bidsm-5", Preset: "bism-board-dsm", Flags: map[string]string{"unroll": "5"}, Expect: ll(judge.Number{Value: 0.29, To: 0.33})},
			{Name: "bidsm-10", Preset: "bism-board-dsm", Flags: map[string]string{"unroll": "10"}},
			{Name: "bissm-0", Preset: "bism-board-ssm", Flags: map[string]string{"unroll": "0"}, KnownBad: true},
			{Name: "bissm-5", Preset: "bism-board-ssm", Flags: map[string]string{"unroll": "5"}},
			{Name: "bissm-10", Preset: "bism-board-ssm", Flags: map[string]string{"unroll": "10"}},
		},
		Checks: []judge.Check{
			judge.Worse{Measure: "ll", Bad: []string{"bidsm-0"}, Than: good, By: 0.3},
			judge.Bound{Of: judge.Rows("ll", all...), Lo: math.Inf(-1), Hi: math.Ln2},
		},
		Figures: []plan.Figure{
			{File: "ll", Title: "Checkerboard: log-likelihood of test data", X: "steps", Y: "LL, nats", Curve: "ll", Low: -0.5, High: 0.5},
		},
		Pictures: []plan.Picture{{Title: "Densities after training", Rows: []string{"dsm", "cd-1", "bidsm-0", "bidsm-5", "bissm-5"}, Glob: "samples/density-*.png", Asks: "density"}},
	}
}
