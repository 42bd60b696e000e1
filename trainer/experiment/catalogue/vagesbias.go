package catalogue

import (
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/experiment/vagesbias"
)

// vagesBias is the numerical validation of the theorems on VaES and VaGES.
func vagesBias() plan.Experiment {
	row := func(model, estimate, most string) plan.Row {
		return plan.Row{Name: model + "-" + estimate, Flags: map[string]string{vagesbias.FlagModel: model, vagesbias.FlagEstimate: estimate, vagesbias.FlagMost: most}}
	}
	rows := []plan.Row{
		row(vagesbias.Units, vagesbias.VaES, "1"), row(vagesbias.Units, vagesbias.VaGES, "1"),
		row(vagesbias.Gauss, vagesbias.VaES, "0.03"), row(vagesbias.Gauss, vagesbias.VaGES, "0.03"),
	}
	rows[3].Lacks = []string{vagesbias.Proven}
	var names, proven []string
	for _, r := range rows {
		names = append(names, r.Name)
		if len(r.Lacks) == 0 {
			proven = append(proven, r.Name)
		}
	}
	const little = 1e-3 // of 400 units: their logits differ by some thousandths
	return plan.Experiment{
		Name: "vages-bias",
		About: "The squared error of VaES and of VaGES on a Frey face, against the divergence of q(h|v) from the posterior (VaGES, Theorems 1–4 and appendix F.4): of a GRBM of 400 hidden units against KL, and of a Gaussian model of as many against the Fisher divergence. " +
			"θ is as it is drawn; q is the posterior, with Gaussian noise on the weights of its linear layer, 20 levels of it. Squared errors fall as the divergence does, and stay below a constant times it.",
		Source:  "the theorems: the error is at most a constant times the divergence's root; the paper has a figure only",
		Data:    freyData(),
		Seeds:   []uint64{1},
		Compute: vagesbias.Compute,
		Columns: []string{vagesbias.Slope, vagesbias.Bound, vagesbias.Over, vagesbias.Proven, vagesbias.Least, vagesbias.Most},
		Rows:    rows,
		Checks: []judge.Check{
			judge.Bound{Of: judge.Rows(vagesbias.Slope, names...), Lo: 0.98, Hi: 1.02},
			judge.Bound{Of: judge.Rows(vagesbias.Over, names...), Lo: 1, Hi: 1.02},
			judge.Bound{Of: judge.Rows(vagesbias.Proven, proven...), Lo: 0, Hi: 1},
			judge.Bound{Of: judge.Rows(vagesbias.Least, names...), Lo: 0, Hi: little},
			judge.Bound{Of: judge.Rows(vagesbias.Most, names...), Lo: 1, Hi: math.Inf(1)},
		},
		Figures: []plan.Figure{
			{File: "units", Title: "GRBM: squared error, and the fitted bound", X: "KL(q ‖ p(h|v))", Y: "squared error", Curve: vagesbias.Bias, Beside: vagesbias.Fitted, Rows: names[:2], LogX: true, LogY: true},
			{File: "gauss", Title: "Gaussian model: squared error, and the fitted bound", X: "Fisher divergence of q from p(h|v)", Y: "squared error", Curve: vagesbias.Bias, Beside: vagesbias.Fitted, Rows: names[2:], LogX: true, LogY: true},
		},
	}
}
