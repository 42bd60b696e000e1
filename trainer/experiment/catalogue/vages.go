package catalogue

import (
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// vagesKSD is VaGES' checkerboard with the kernelised Stein discrepancy.
func vagesKSD() plan.Experiment {
	// The other program's numbers are of one seed, and known to about this.
	const width = 0.08
	row := func(name, estimator, particles string, ll *float64) plan.Row {
		r := plan.Row{Name: name, Preset: "vages-ksd-board", Flags: map[string]string{"estimator": estimator}}
		if particles != "" {
			r.Flags["particles"] = particles
		}
		if ll != nil {
			r.Expect = map[string]judge.Number{"ll": {Value: *ll, Tol: width}}
		}
		return r
	}
	// With two fair coins the likelihood stays at −0.6 for 70,000 steps and then falls,
	// to −0.7 or −1.2 by 100,000, earlier for some seeds than for others: what one seed
	// has there is stated, and not judged. Plain loops of the same formulas do the same
	// (three seeds: −1.11, −0.73, −1.10).
	unstable := func(r plan.Row) plan.Row {
		r.Expect = map[string]judge.Number{"ll": {Value: r.Expect["ll"].Value}}
		return r
	}
	is := func(x float64) *float64 { return &x }
	order := func(particles string) judge.Check {
		return judge.Order{Rising: judge.Rows("ll", "is-"+particles, "vages-"+particles, "ksd")}
	}
	return plan.Experiment{
		Name: "vages-ksd-board",
		About: "The checkerboard by the kernelised Stein discrepancy (VaGES, §4.1): with the exact score, with VaGES of L particles, and with importance sampling of the free energy by L fair coins. " +
			"VaGES comes between the two at every L, and both rise with L.",
		Source:   "a program of the same specification, 100,000 steps; the paper has curves only",
		Data:     checkerboardData(),
		Seeds:    []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		Flags:    map[string]string{"steps": "100000"},
		Evaluate: map[string]string{"split": "test"},
		Curves:   []plan.Curve{{Name: "ll", Measure: "ll", Every: 10_000}},
		Columns:  []string{"ll", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			row("ksd", "exact", "", is(0.23)),
			row("vages-2", "variational", "2", is(0.09)), row("vages-5", "variational", "5", nil), row("vages-10", "variational", "10", is(0.21)),
			unstable(row("is-2", "importance", "2", is(-0.53))), row("is-5", "importance", "5", nil), row("is-10", "importance", "10", is(0.04)),
		},
		Checks: []judge.Check{
			order("2"), order("5"), order("10"),
			judge.Order{Rising: judge.Rows("ll", "vages-2", "vages-5", "vages-10")},
			judge.Order{Rising: judge.Rows("ll", "is-2", "is-5", "is-10")},
			judge.Bound{Of: judge.Rows("ll", "ksd", "vages-2", "vages-5", "vages-10", "is-2", "is-5", "is-10"), Lo: math.Inf(-1), Hi: math.Ln2},
		},
		Figures: []plan.Figure{
			{File: "ll", Title: "Checkerboard by KSD: log-likelihood of test data", X: "steps", Y: "LL, nats", Curve: "ll", Low: -1.5, High: 0.5},
		},
	}
}

// vagesDSM is VaGES' checkerboard by denoising, beside what it competes with.
func vagesDSM() plan.Experiment {
	const width = 0.04 // as that of the experiment board
	vages := func(name string, flags map[string]string) plan.Row {
		return plan.Row{Name: name, Preset: "vages-dsm-board", Flags: flags}
	}
	good := func(r plan.Row) plan.Row {
		r.Expect = map[string]judge.Number{"ll": {Value: 0.32, Tol: width}}
		return r
	}
	notBelow := func(rival string) judge.Check {
		return judge.Gap{Of: judge.Value{Row: "vages-2", Measure: "ll"}, Than: judge.Value{Row: rival, Measure: "ll"}, Lo: -width / 2, Hi: math.Inf(1)}
	}
	return plan.Experiment{
		Name: "vages-dsm-board",
		About: "The checkerboard by denoising (VaGES, §4.1): VaGES comes where CD, DSM and BiDSM with five unrolled steps come, and not below PCD, NCE and VNCE, at less time for a step than BiDSM. " +
			"Without the covariance it lands where BiDSM with nothing unrolled does.",
		Source:   "a program of the same specification, 100,000 steps; the paper has curves only",
		Data:     checkerboardData(),
		Seeds:    []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		Flags:    map[string]string{"steps": "100000"},
		Evaluate: map[string]string{"split": "test"},
		Columns:  []string{"ll", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			good(vages("vages-2", map[string]string{"particles": "2"})),
			good(vages("vages-10", map[string]string{"particles": "10"})),
			{Name: "without-covariance", Preset: "vages-dsm-board", Flags: map[string]string{"without-covariance": "true"}, Expect: map[string]judge.Number{"ll": {Value: -0.27}}, KnownBad: true},
			good(plan.Row{Name: "dsm", Preset: "sm-board-dsm"}),
			good(plan.Row{Name: "bidsm-5", Preset: "bism-board-dsm", Flags: map[string]string{"unroll": "5"}}),
			good(plan.Row{Name: "cd", Preset: "cd-board"}),
			{Name: "pcd", Preset: "pcd-board"}, {Name: "nce", Preset: "nce-board"}, {Name: "vnce", Preset: "vnce-board"},
		},
		Checks: []judge.Check{
			judge.Worse{Measure: "ll", Bad: []string{"without-covariance"}, Than: []string{"vages-2", "vages-10"}, By: 0.3},
			notBelow("pcd"), notBelow("nce"), notBelow("vnce"),
			judge.Order{Rising: judge.Rows("step-ms", "vages-2", "bidsm-5")},
		},
	}
}

// vagesFrey is VaGES on the Frey faces.
func vagesFrey() plan.Experiment {
	row := func(name, particles, steps string, expect map[string]judge.Number) plan.Row {
		return plan.Row{Name: name, Preset: "vages-frey", Flags: map[string]string{"particles": particles, "lower-steps": steps}, Expect: expect}
	}
	// One seed of a program of the same specification: stated, not judged.
	said := func(fisher, ll float64) map[string]judge.Number {
		return map[string]judge.Number{"fisher": {Value: fisher}, "ll": {Value: ll}}
	}
	between := func(rows ...string) judge.Check {
		return judge.Bound{Of: judge.Rows("fisher", rows...), Lo: -5882, Hi: -5506} // DSM's and BiDSM's with N = 1
	}
	return plan.Experiment{
		Name: "vages-frey",
		About: "Frey faces by VaGES with denoising: L particles and K steps of the lower level. It comes between BiDSM with one unrolled step and DSM, and more particles are better. " +
			"The checkpoint is chosen by the loss of denoising on the validation frames, and not, as in the paper, by their likelihood, which takes an annealed chain for each of ten; of these rows that is always the last one, of step 20,000. " +
			"The last row computes the covariance as published, from the same draws: the same curve.",
		Source:   "a program of the same specification, one seed; DSM there −5882 and 129.4, BiDSM with N = 10 −5800 and 125.9, with N = 1 −5506 and 110.1",
		Data:     freyData(),
		Seeds:    []uint64{1, 2, 3},
		Flags:    map[string]string{"steps": "20000"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Columns:  []string{"fisher", "ll", "ll-back", "fisher-last", "step", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			row("l-2-k-1", "2", "1", nil), row("l-2-k-5", "2", "5", said(-5715, 121.8)),
			row("l-10-k-1", "10", "1", nil), row("l-10-k-5", "10", "5", said(-5806, 126.1)),
			{Name: "l-2-k-5-product", Preset: "vages-frey", Flags: map[string]string{"particles": "2", "lower-steps": "5", "surrogate": "product"}},
		},
		Checks: []judge.Check{
			between("l-2-k-5", "l-10-k-5"),
			judge.Order{Rising: judge.Rows("fisher", "l-10-k-5", "l-2-k-5")},
			judge.Order{Rising: judge.Rows("fisher", "l-10-k-1", "l-2-k-1")},
			judge.Order{Rising: judge.Rows("ll", "l-2-k-5", "l-10-k-5")},
			judge.Gap{Of: judge.Value{Row: "l-2-k-5-product", Measure: "fisher"}, Than: judge.Value{Row: "l-2-k-5", Measure: "fisher"}, Lo: -10, Hi: 10},
		},
	}
}
