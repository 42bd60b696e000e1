package catalogue

import (
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func frey() plan.Experiment {
	expect := func(ll, fisher judge.Number) map[string]judge.Number {
		return map[string]judge.Number{"ll": ll, "fisher": fisher}
	}
	bilevel := func(n, k string) map[string]string { return map[string]string{"unroll": n, "lower-steps": k} }
	const tolLL, tolFisher = 2.5, 30
	return plan.Experiment{
		Name: "frey",
		About: "Frey faces (BiSM, Table 1 and its ablations): a Gaussian RBM with 400 hidden units by DSM, and by BiDSM with N unrolled steps and K of the lower level. " +
			"More of either is better, without exception; K = 0 never moves the posterior and is the known bad. The likelihood is by annealed importance sampling, the Fisher metric with the exact trace.",
		Source:   "BiSM, Table 1 and §5.1",
		Data:     freyData(),
		Seeds:    []uint64{1, 2, 3},
		Flags:    map[string]string{"steps": "20000"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Columns:  []string{"ll", "ll-back", "fisher", "fisher-last", "step", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			{Name: "dsm", Preset: "sm-frey", Expect: expect(judge.Number{Value: 129.2, Tol: 1}, judge.Number{Value: -5885, Tol: 10})},
			{Name: "n-0", Preset: "bism-frey", Flags: bilevel("0", "5"), Expect: expect(judge.Number{Value: 107.6, Tol: tolLL}, judge.Number{Value: -5475, Tol: tolFisher})},
			{Name: "n-1", Preset: "bism-frey", Flags: bilevel("1", "5"), Expect: expect(judge.Number{Value: 110.7, Tol: tolLL}, judge.Number{Value: -5516, Tol: tolFisher})},
			{Name: "n-5", Preset: "bism-frey", Flags: bilevel("5", "5"), Expect: expect(judge.Number{Value: 124.0, Tol: tolLL}, judge.Number{Value: -5780, Tol: tolFisher})},
			{Name: "n-10", Preset: "bism-frey", Flags: bilevel("10", "5"), Expect: expect(judge.Number{Value: 125.7, Tol: tolLL}, judge.Number{Value: -5800, Tol: tolFisher})},
			{Name: "k-0", Preset: "bism-frey", Flags: bilevel("5", "0"), Expect: map[string]judge.Number{"fisher": {Value: -3775}}, KnownBad: true},
			{Name: "k-1", Preset: "bism-frey", Flags: bilevel("5", "1"), Expect: map[string]judge.Number{"fisher": {Value: -5685, Tol: tolFisher}}},
			{Name: "k-10", Preset: "bism-frey", Flags: bilevel("5", "10"), Expect: map[string]judge.Number{"fisher": {Value: -5796, Tol: tolFisher}}},
		},
		Checks: []judge.Check{
			judge.Order{Rising: judge.Rows("fisher", "dsm", "n-10", "n-5", "n-1", "n-0")},
			judge.Order{Rising: judge.Rows("ll", "n-0", "n-1", "n-5", "n-10", "dsm")},
			judge.Order{Rising: judge.Rows("fisher", "k-10", "n-5", "k-1", "k-0")},
			judge.Worse{Measure: "fisher", Bad: []string{"k-0"}, Than: []string{"k-1", "n-5", "k-10"}, By: 1000, LowIsGood: true},
		},
	}
}
