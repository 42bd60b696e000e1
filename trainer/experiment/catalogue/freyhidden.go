package catalogue

import (
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func freyHidden() plan.Experiment {
	dsm := func(hidden string, fisher float64) plan.Row {
		return plan.Row{Name: "dsm-" + hidden, Preset: "sm-frey", Flags: map[string]string{"hidden": hidden}, Expect: map[string]judge.Number{"fisher": {Value: fisher}}}
	}
	bidsm := func(hidden string, fisher float64) plan.Row {
		return plan.Row{Name: "bidsm-" + hidden, Preset: "bism-frey", Flags: map[string]string{"hidden": hidden, "unroll": "10", "lower-steps": "5"}, Expect: map[string]judge.Number{"fisher": {Value: fisher}}}
	}
	// The distances of the paper's own numbers are 58 to 95.
	behind := func(hidden string) judge.Check {
		return judge.Gap{Of: judge.Value{Row: "bidsm-" + hidden, Measure: "fisher"}, Than: judge.Value{Row: "dsm-" + hidden, Measure: "fisher"}, Lo: 58, Hi: 95}
	}
	return plan.Experiment{
		Name:     "frey-h",
		About:    "Frey faces with 50 to 500 hidden units (BiSM, §5.1): the Fisher metric falls with their number, and BiDSM with N = 10 stays some way behind DSM.",
		Source:   "BiSM, §5.1",
		Data:     freyData(),
		Seeds:    []uint64{1},
		Flags:    map[string]string{"steps": "20000"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Columns:  []string{"fisher", "ll", "ll-back", "step-ms", "cpu-s"},
		Rows: []plan.Row{
			dsm("50", -5704), dsm("100", -5729), dsm("200", -5799), dsm("400", -5885), dsm("500", -5896),
			bidsm("50", -5609), bidsm("100", -5671), bidsm("200", -5737), bidsm("400", -5800), bidsm("500", -5815),
		},
		Checks: []judge.Check{
			judge.Order{Rising: judge.Rows("fisher", "dsm-500", "dsm-400", "dsm-200", "dsm-100", "dsm-50")},
			judge.Order{Rising: judge.Rows("fisher", "bidsm-500", "bidsm-400", "bidsm-200", "bidsm-100", "bidsm-50")},
			behind("50"), behind("100"), behind("200"), behind("400"), behind("500"),
		},
	}
}
