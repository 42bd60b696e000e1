package catalogue

import (
	"maps"
	"slices"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// celebaWhole are the faces as the latent-space prior has them: made small, and then
// cut to a square.
func celebaWhole() *plan.DataSet {
	return &plan.DataSet{
		Name: "celeba32-whole", Make: []string{"celeba", "--crop", "none", "--size", "32"},
		Source: "img_align_celeba.zip of https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html, or some of it",
	}
}

// bySamples are the measures, of which less is better, that say how good samples are:
// columns of the experiments on pictures, and claims by each.
var bySamples = []string{"frechet", "kid", "swd"}

// lebm are the generators of base width 16, a fourth of the paper's for SVHN, for so
// many steps.
func lebm(name, about string, data *plan.DataSet, rows []plan.Row, claims func(measure string) []judge.Check) plan.Experiment {
	const same = 0.01 // of reconstructions that are as good
	checks := []judge.Check{judge.Gap{Of: judge.Value{Row: "gaussian-1", Measure: "rmse"}, Than: judge.Value{Row: "ebm", Measure: "rmse"}, Lo: -same, Hi: same}}
	for _, m := range bySamples {
		checks = append(checks, claims(m)...)
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
		checks = append(checks, judge.Order{Rising: judge.Measures(r.Name, "rmse", "rmse-mean")})
	}
	return plan.Experiment{
		Name: name, About: about,
		Source:   "the paper's numbers are Fréchet distances at full width, of SVHN: 29.44 for the EBM prior, and 43.39, 41.10 and 39.50 for the fixed Gaussian with 1, 2 and 4 times the parameters",
		Data:     data,
		Seeds:    []uint64{1, 2, 3},
		Flags:    map[string]string{"steps": "5000", "batch": "100"},
		Evaluate: map[string]string{"split": "test"},
		Sample:   map[string]string{"n": "64"},
		Curves:   []plan.Curve{{Name: "recon", Loss: "recon"}, {Name: "energy", Loss: "energy"}},
		Columns:  append(slices.Clone(bySamples), "rmse", "rmse-mean", "recon-last", "energy-last", "norm-prior-last", "step-ms", "sample-s", "cpu-s"),
		Rows:     rows,
		// Latents of a prior that has learnt something neither shrink to a point nor
		// leave where N(0, I) has them.
		Checks: append(checks, judge.Bound{Of: judge.Rows("norm-prior-last", names...), Lo: 0.3, Hi: 3}),
		Figures: []plan.Figure{
			{File: "recon", Title: "Loss of the generator", X: "steps", Y: "squared error of a picture", Curve: "recon", LogY: true},
		},
		Pictures: []plan.Picture{{Title: "64 samples", Glob: "samples.png"}},
	}
}

// lebmRow is a row of a preset at base width 16, or another in flags.
func lebmRow(name, preset string, flags map[string]string) plan.Row {
	r := plan.Row{Name: name, Preset: preset, Flags: map[string]string{"ngf": "16"}}
	maps.Copy(r.Flags, flags)
	if r.Flags["prior"] == "gaussian" {
		r.Lacks = []string{"energy-last", "energy"}
	}
	return r
}

// clearly claims that the EBM prior's samples are better than those of the fixed one.
func clearly(measure string) []judge.Check {
	return []judge.Check{judge.Clear{Low: judge.Value{Row: "ebm", Measure: measure}, High: judge.Value{Row: "gaussian-1", Measure: measure}, SDs: 2}}
}

// ablated adds that they are better than those of four times the parameters, and that
// more transitions make them no worse.
func ablated(measure string) []judge.Check {
	checks := append(clearly(measure), judge.Order{Rising: judge.Rows(measure, "ebm", "gaussian-4")})
	for _, more := range [][2]string{{"ebm", "k0-40"}, {"k0-80", "ebm"}, {"k1-40", "ebm"}, {"k1-60", "k1-40"}} {
		checks = append(checks, judge.Ratio{Of: judge.Value{Row: more[0], Measure: measure}, To: judge.Value{Row: more[1], Measure: measure}, Most: 1.05})
	}
	return checks
}

// lebmPictures is the ablation of the latent-space prior on faces.
func lebmPictures() plan.Experiment {
	const preset = "lebm-celeba32"
	gaussian := func(name, ngf string) plan.Row {
		return lebmRow(name, preset, map[string]string{"prior": "gaussian", "ngf": ngf})
	}
	steps := func(name, flag, k string) plan.Row { return lebmRow(name, preset, map[string]string{flag: k}) }
	return lebm("lebm-pictures",
		"Faces at 32×32 by the latent-space energy-based prior, beside a fixed Gaussian prior whose generator has 1, 2 and 4 times the parameters (base widths 16, 25 and 39), and with more and fewer transitions of either chain (K0 = 60 and K1 = 20 elsewhere). "+
			"Reconstructions are the posterior's, and as good with either prior; what the prior is for are the samples.",
		celebaWhole(),
		[]plan.Row{
			lebmRow("ebm", preset, nil),
			gaussian("gaussian-1", "16"), gaussian("gaussian-2", "25"), gaussian("gaussian-4", "39"),
			steps("k0-40", "prior-steps", "40"), steps("k0-80", "prior-steps", "80"),
			steps("k1-40", "posterior-steps", "40"), steps("k1-60", "posterior-steps", "60"),
		},
		ablated)
}

// lebmCIFAR is its baseline on CIFAR-10.
func lebmCIFAR() plan.Experiment {
	const preset = "lebm-svhn"
	return lebm("lebm-pictures-cifar10",
		"CIFAR-10 by the latent-space energy-based prior and by a fixed Gaussian prior, with the generator of SVHN's shape: that of CIFAR-10 takes eight times as long.",
		cifarData(),
		[]plan.Row{lebmRow("ebm", preset, nil), lebmRow("gaussian-1", preset, map[string]string{"prior": "gaussian"})},
		clearly)
}
