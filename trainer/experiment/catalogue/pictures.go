package catalogue

import (
	"maps"
	"math"
	"slices"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// energyRate is a third of the published rate of BiDVL's energy: with the published one
// an energy of a quarter of the width saturates within 300 steps and never comes back,
// in PyTorch as here (trainer/experiment/peers), and the rest of the run compares VAEs.
const energyRate = "3e-5"

// pictures are the generative models of BiDVL's tables on CIFAR-10, at a quarter of
// their width.
func pictures() plan.Experiment {
	return generative(plan.Experiment{
		Name: "pictures",
		About: "CIFAR-10, as in the tables of BiDVL: a VAE, BiDVL with its latent term offset, left out and not offset, with two other weights r' of the VAE's terms, and SNGAN with one and with five updates of its discriminator for each of its generator, all a quarter as wide as published and a sixtieth or, SNGAN, a twentieth as long; BiDVL's energy learns at a third of the published rate, since with that rate it would saturate at this width, which with this one it still does for some seeds. " +
			expectedOfPictures + " SNGAN has neither energies nor reconstructions.",
		Flags: map[string]string{"width": "16", "batch": "64", "steps": "5000"},
		Rows:  append(variational(map[string]string{"lr-energy": energyRate}), adversarial(nil)...),
	}, 500)
}

// picturesLong are those of them that learn by a lower bound, for twice as long.
func picturesLong() plan.Experiment {
	return generative(plan.Experiment{
		Name:  "pictures-long",
		About: "The VAE and the rows of BiDVL of pictures for twice as long, a thirtieth of the published run. " + expectedOfPictures,
		Flags: map[string]string{"width": "16", "batch": "64", "steps": "10000"},
		Rows:  variational(map[string]string{"lr-energy": energyRate}),
	}, 1000)
}

// picturesWide are all of them as wide as published, with the published rates. Four times
// as wide is about sixteen times the work of a step of pictures: it is for GPUs.
func picturesWide() plan.Experiment {
	return generative(plan.Experiment{
		Name: "pictures-wide",
		About: "The rows of pictures as wide as published and with the published rates, a thirtieth or, SNGAN, a twentieth as long, which takes a GPU. " +
			expectedOfPictures,
		Flags: map[string]string{"batch": "64", "steps": "10000"},
		Rows:  append(variational(nil), adversarial(map[string]string{"steps": "5000"})...),
	}, 1000)
}

const expectedOfPictures = "Samples of the VAE are the worst, and those of BiDVL with r' = 1 worse than with 0.05. " +
	"BiDVL reconstructs better than the VAE, and better with the latent term than without. " +
	"The former is not of the method alone: a decoder of less variance reconstructs more of a picture, and the VAE's is s² = 1, with which its RMSE is near the one that the table cites, while BiDVL's squared error without ½ is that of s² = ½. The row vae-half is a VAE of that variance: beside it, the methods are compared. " +
	"Energies, where there are any, tell pictures from noise, at least early, and from house numbers and faces: the curves say for how long."

// ofEnergies are measures that a row without energies lacks: AUROCs of every checkpoint,
// of the last one, and of the best.
func ofEnergies() (curves, columns []string) {
	curves = []string{"auroc-noise", "auroc-svhn", "auroc-celeba"}
	for _, c := range curves {
		columns = append(columns, c, c+"-best")
	}
	return curves, columns
}

// variational are the VAE, with the variance of its decoder as it is taken to be in BiDVL's
// table and with BiDVL's own, and the rows of BiDVL, these with flags besides their own.
func variational(flags map[string]string) []plan.Row {
	_, energies := ofEnergies()
	rmse := func(x float64) map[string]judge.Number { return map[string]judge.Number{"rmse": {Value: x}} }
	bidvl := func(name string, expect map[string]judge.Number, flag, value string) plan.Row {
		all := map[string]string{flag: value}
		maps.Copy(all, flags)
		return plan.Row{Name: name, Preset: "bidvl-cifar10", Flags: all, Expect: expect}
	}
	return []plan.Row{
		{Name: "vae", Preset: "vae-cifar10", Expect: rmse(0.192), Lacks: energies},
		{Name: "vae-half", Preset: "vae-cifar10", Flags: map[string]string{"decoder-variance": "0.5"}, Lacks: energies},
		bidvl("bidvl-offset", rmse(0.168), "latent-term", "offset"),
		bidvl("bidvl-without", rmse(0.175), "latent-term", "none"),
		bidvl("bidvl-not-offset", rmse(0.170), "latent-term", "not-offset"),
		bidvl("bidvl-r-0.01", nil, "vae-weight", "0.01"),
		bidvl("bidvl-r-1", nil, "vae-weight", "1"),
	}
}

// adversarial are the rows of SNGAN, with one and five updates of its discriminator, and
// flags besides their own. Its rate falls to nothing over 5,000 steps.
func adversarial(flags map[string]string) []plan.Row {
	_, energies := ofEnergies()
	sngan := func(name, updates, batch string) plan.Row {
		all := map[string]string{"n-dis": updates, "batch": batch, "schedule-steps": "5000"}
		maps.Copy(all, flags)
		return plan.Row{Name: name, Preset: "sngan-cifar10", Lacks: append([]string{"rmse"}, energies...), Flags: all}
	}
	return []plan.Row{
		sngan("sngan-1", "1", "32"),
		sngan("sngan-5", "5", "160"), // as published: 32 pictures for each update
	}
}

// generative completes an experiment of these rows: energies are
// measured after every so many steps.
func generative(e plan.Experiment, every int64) plan.Experiment {
	var quick, bidvl []string // what draws samples in one pass; what has energies
	for _, r := range e.Rows {
		switch {
		case r.Preset == "bidvl-cifar10":
			bidvl = append(bidvl, r.Name)
		case r.Name != "vae-half": // which is there for its reconstructions
			quick = append(quick, r.Name)
		}
	}
	e.Checks = []judge.Check{
		judge.Order{Rising: judge.Rows("rmse", "bidvl-offset", "vae")},
		judge.Order{Rising: judge.Rows("rmse", "bidvl-not-offset", "vae")},
		judge.Order{Rising: judge.Rows("rmse", "vae-half", "vae")},
		judge.Order{Rising: judge.Rows("rmse", "bidvl-offset", "vae-half")},
		judge.Order{Rising: judge.Rows("rmse", "bidvl-offset", "bidvl-without")},
		judge.Bound{Of: judge.Rows("auroc-noise-best", bidvl...), Lo: 0.5, Hi: 1},
		judge.Bound{Of: judge.Rows("sample-s", quick...), Lo: math.Inf(-1), Hi: 60},
	}
	better := slices.Concat(bidvl, quick[1:])
	for _, m := range bySamples {
		e.Checks = append(e.Checks,
			judge.Worse{Measure: m, Bad: []string{"vae"}, Than: better, LowIsGood: true},
			judge.Order{Rising: judge.Rows(m, "bidvl-offset", "bidvl-r-1")})
	}
	curves, energies := ofEnergies()
	for i, c := range curves {
		e.Curves = append(e.Curves, plan.Curve{Name: c, Measure: c, Every: every})
		e.Figures = append(e.Figures, plan.Figure{File: c, Title: "CIFAR-10: energies of pictures against those of " + []string{"noise", "SVHN", "CelebA"}[i],
			X: "steps", Y: "AUROC", Curve: c, Rows: bidvl, Low: 0, High: 1})
	}
	// From checkpoint to checkpoint an energy that lives moves one of the three by 0.028 at least
	// (the least of 13 cells of 10 checkpoints); one that saturated by 0.008 while it settles and
	// 0.002 then. Against noise alone one that always tells it, at 1.0000, would look dead.
	e.Saturates = &plan.Saturation{Curves: curves, Within: 0.01, Least: 3}
	e.Source = "BiDVL, at full width and 300,000 steps; its table cites the VAE's"
	e.Data, e.Beside = cifarData(), []plan.DataSet{svhnData(), facesData()}
	e.Seeds = []uint64{1, 2, 3}
	e.Evaluate, e.Sample = map[string]string{"split": "test"}, map[string]string{"n": "64"}
	e.Columns = slices.Concat(bySamples, []string{"rmse"}, energies, []string{"step-ms", "sample-s", "cpu-s"})
	e.Pictures = []plan.Picture{
		{Title: "64 samples", Glob: "samples.png"},
		{Title: "Test pictures above their reconstructions", Glob: "samples/recon-*.png", Asks: "rmse", Rows: []string{"vae", "vae-half", "bidvl-offset", "bidvl-without", "bidvl-r-1"}},
	}
	return e
}
