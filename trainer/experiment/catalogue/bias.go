package catalogue

import (
	"math"
	"slices"

	"ebtrain/trainer/experiment/bias"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func biases() plan.Experiment {
	var unrolled []string
	var at []float64
	for _, n := range bias.Unrolled() {
		unrolled, at = append(unrolled, bias.Column(n)), append(at, float64(n))
	}
	falling := func(row string) judge.Check { return judge.Order{Rising: reversed(judge.Measures(row, unrolled...))} }
	row := func(k, rate string) plan.Row {
		return plan.Row{Name: "k-" + k, Flags: map[string]string{bias.FlagSteps: k, bias.FlagRate: rate}}
	}
	rows := []plan.Row{row("0", "1e-3"), row("5", "1e-3"), row("20", "1e-3"), row("100", "1e-3"), row("300", "1e-3")}
	rows[0].Expect = map[string]judge.Number{"N=0": {Value: 0.41}, "N=20": {Value: 0.19}}
	rows[4].Expect = map[string]judge.Number{"N=0": {Value: 0.17}, "N=1": {Value: 0.15}, "N=2": {Value: 0.13}, "N=5": {Value: 0.09}, "N=10": {Value: 0.05}, "N=20": {Value: 0.014}}
	long := row("300", "5e-3")
	long.Name, long.KnownBad, long.Lacks = "k-300-long-steps", true, append([]string{bias.Distance}, unrolled...)
	names := []string{"k-300", "k-100", "k-20", "k-5", "k-0"}
	checks := []judge.Check{judge.Order{Rising: judge.Rows(bias.Distance, names...)}}
	for _, n := range unrolled {
		checks = append(checks, judge.Order{Rising: judge.Rows(n, names...)})
	}
	for _, name := range names {
		checks = append(checks, falling(name))
	}
	// A factor of e^0.15 around the line is near-geometric: the bias falls by one
	// of e^2.5 in all.
	const near = 0.15
	return plan.Experiment{
		Name: "bias",
		About: "The bias of BiSM's hypergradient on Frey faces (BiSM, Fig. 1 and Theorem 2), at the initial model, on one batch with one set of draws, by plain steps of 1e-3: relative to the gradient of K = 300, N = 30. " +
			"It falls with the unrolled steps N, near-geometrically at K = 300, and with the steps K before them, as the distance of the posterior from φ* does (φ* is after 3,000 steps). Steps of 5e-3 explode.",
		Source:  "a PyTorch program of the same specification, with other draws",
		Data:    freyData(),
		Seeds:   []uint64{1},
		Compute: bias.Compute,
		Columns: append(unrolled, bias.Distance, bias.Growth),
		Rows:    append(rows, long),
		Checks: append(checks,
			judge.Linear{Of: judge.Measures("k-300", unrolled...), X: at, Log: true, Within: near},
			judge.Bound{Of: judge.Rows(bias.Growth, names...), Lo: math.Inf(-1), Hi: 2},
			judge.Bound{Of: judge.Rows(bias.Growth, long.Name), Lo: 4, Hi: math.Inf(1)},
		),
		Figures: []plan.Figure{{File: "bias", Title: "Relative bias of the hypergradient", X: "N, unrolled steps", Y: "bias", Curve: bias.Curve, LogY: true}},
	}
}

func reversed(values []judge.Value) []judge.Value {
	slices.Reverse(values)
	return values
}
