package catalogue

import (
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

func freyBad() plan.Experiment {
	bad := func(name, preset, flag, value string) plan.Row {
		return plan.Row{Name: name, Preset: preset, Flags: map[string]string{flag: value}, KnownBad: true}
	}
	// What BiDSM loses from N = 10 to N = 5 is 20; five times that is clear.
	const clearly = 100
	worse := func(than string, rows ...string) judge.Check {
		return judge.Worse{Measure: "fisher", Bad: rows, Than: []string{than}, By: clearly, LowIsGood: true}
	}
	return plan.Experiment{
		Name:     "frey-bad",
		About:    "Frey faces with settings that do not work (BiSM, appendix): DSM and BiDSM need the noise level 0.3 and a rate of some 1e-4. All others are clearly worse, or diverge, says the paper; by these two measures the noise level 0.1 is better, in PyTorch as here (trainer/experiment/peers).",
		Source:   "",
		Data:     freyData(),
		Seeds:    []uint64{1},
		Flags:    map[string]string{"steps": "20000"},
		Evaluate: map[string]string{"split": "test"},
		Select:   byValidation(),
		Columns:  []string{"fisher", "ll", "cpu-s"},
		Rows: []plan.Row{
			{Name: "dsm", Preset: "sm-frey"},
			bad("dsm-sigma-0.01", "sm-frey", "sigma", "0.01"),
			bad("dsm-sigma-0.1", "sm-frey", "sigma", "0.1"),
			bad("dsm-sigma-1", "sm-frey", "sigma", "1"),
			bad("dsm-rate-1e-2", "sm-frey", "lr", "0.01"),
			{Name: "bidsm", Preset: "bism-frey"},
			bad("bidsm-sigma-0.01", "bism-frey", "sigma", "0.01"),
			bad("bidsm-sigma-0.1", "bism-frey", "sigma", "0.1"),
			bad("bidsm-sigma-1", "bism-frey", "sigma", "1"),
			bad("bidsm-rate-1e-2", "bism-frey", "lr", "0.01"),
		},
		Checks: []judge.Check{
			worse("dsm", "dsm-sigma-0.01", "dsm-sigma-0.1", "dsm-sigma-1", "dsm-rate-1e-2"),
			worse("bidsm", "bidsm-sigma-0.01", "bidsm-sigma-0.1", "bidsm-sigma-1", "bidsm-rate-1e-2"),
		},
	}
}
