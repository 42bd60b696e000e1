package catalogue

import (
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// level is a rise that is none: medians of two tenths of a run differ by chance by
// √2 · 0.35 % where the loss has become level (MDSM on MNIST); this is twice that.
const level = 0.01

func mnist() plan.Experiment {
	const minute = 60
	posterior := []string{"gap", "probe", "probe-untrained", "probe-scaled", "probe-untrained-scaled", "probe-raw", "lower-peak", "lower-last", "lower-decades", "lower"}
	bilevel := func(hidden string, probe float64) plan.Row {
		return plan.Row{Name: "bimdsm-" + hidden, Preset: "bism-mnist", Flags: map[string]string{"hidden": hidden, "posterior-width": "8"},
			Expect: map[string]judge.Number{"probe": {Value: probe}, "probe-raw": {Value: 91.58}}}
	}
	probe := func(row string) judge.Check {
		return judge.Order{Rising: judge.Measures(row, "probe-untrained", "probe")}
	}
	bimdsm := []string{"bimdsm-20", "bimdsm-50", "bimdsm-100"}
	all := append([]string{"mdsm"}, bimdsm...)
	return plan.Experiment{
		Name: "mnist",
		About: "MNIST at 32×32 (BiSM, Fig. 5 and the table of the probe): the deep energy of width 8 by MDSM, and by BiMDSM with 20, 50 and 100 latents, the posterior of width 8 too, a tenth of the paper's steps and an eighth of its width. " +
			"The upper loss falls throughout; the divergence of the posterior falls by two decades from its peak; a linear probe on posterior means does better with more latents, and better than on an untrained posterior. The probe sees less in means of a small scale; standardised ones show what they tell.",
		Source:   "BiSM, of width 64 and 100,000 steps, its probe trained on all 60,000 digits; here on 10,000, by networks of width 8 and 10,000 steps, which is why it is behind",
		Data:     mnistData(),
		Seeds:    []uint64{1},
		Flags:    map[string]string{"steps": "10000", "schedule-steps": "10000", "width": "8", "batch": "100"},
		Evaluate: map[string]string{"split": "test"},
		Sample:   map[string]string{"n": "64"},
		Curves:   []plan.Curve{{Name: "upper", Loss: "upper"}, {Name: "lower", Loss: "lower"}},
		Columns: []string{"probe", "probe-untrained", "probe-scaled", "probe-untrained-scaled", "probe-raw", "gap", "upper-first", "upper-400", "upper-3350", "upper-last", "upper-rise",
			"lower-peak", "lower-last", "lower-decades", "step-ms", "sample-s", "cpu-s"},
		Rows: []plan.Row{
			{Name: "mdsm", Preset: "mdsm-mnist", Lacks: posterior},
			bilevel("20", 93.85), bilevel("50", 97.39), bilevel("100", 97.75),
		},
		Checks: []judge.Check{
			judge.Bound{Of: judge.Rows("upper-rise", all...), Lo: math.Inf(-1), Hi: level},
			judge.Bound{Of: judge.Rows("lower-decades", bimdsm...), Lo: 2, Hi: math.Inf(1)},
			judge.Order{Rising: judge.Rows("probe", bimdsm...)},
			probe("bimdsm-20"), probe("bimdsm-50"), probe("bimdsm-100"),
			judge.Bound{Of: judge.Rows("sample-s", all...), Lo: math.Inf(-1), Hi: minute},
		},
		Figures: []plan.Figure{
			{File: "lower", Title: "MNIST: Fisher divergence of the posterior", X: "steps", Y: "lower loss", Curve: "lower", Rows: bimdsm, LogY: true},
			{File: "upper", Title: "MNIST: upper loss", X: "steps", Y: "upper loss", Curve: "upper", Rows: all, LogY: true},
		},
		Pictures: []plan.Picture{{Title: "64 samples", Glob: "samples.png"}},
	}
}
