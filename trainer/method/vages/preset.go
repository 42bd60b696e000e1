package vages

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Method is VaGES.
func Method() algo.Method {
	return algo.Method{
		Name:    "vages",
		About:   "variational estimates of the score's gradient for energy-based latent variable models",
		Presets: presets(),
		Decode:  algo.Decoder[Config]("vages"),
	}
}

// presets are the experiments of [ALGORITHMS.md §2.2, §2.3, §3.2].
func presets() []algo.Preset {
	const board, deep = 100_000, 300_000
	return []algo.Preset{
		{Name: "vages-ksd-board", About: "GRBM on the checkerboard, kernelised Stein discrepancy", Config: checkerboard(KSD), Batch: 100, Steps: board},
		{Name: "vages-dsm-board", About: "GRBM on the checkerboard, denoising", Config: checkerboard(DSM), Batch: 100, Steps: board},
		{Name: "vages-frey", About: "GRBM on the Frey faces, denoising", Config: frey(), Batch: 100, Steps: 20_000},
		{Name: "vages-mnist", About: "deep model on MNIST padded to 32x32, multiscale denoising", Config: mnist(), Batch: 100, Steps: mnistSteps},
		{Name: "vages-cifar10", About: "deep model on CIFAR-10, multiscale denoising", Config: cifar(), Batch: 100, Steps: deep},
		{Name: "vages-celeba64", About: "deep model on CelebA, crop 140, 64x64, mirrored at random, multiscale denoising", Config: celeba(), Batch: 100, Steps: deep, Flip: true},
	}
}

const mnistSteps = 100_000

// common is what all presets share. What a preset has no use for has the value
// of one that does, so that every flag has a default.
func common() Config {
	return Config{
		Objective: DSM, Noise: score.PublishedNoise(), Bandwidth: 0.1,
		Estimator: Variational, Particles: 2, Surrogate: JVP, Refine: Refine{Rate: 1e-2, Noise: 1e-4},
		Lower: latent.KL, Temperature: 0.1, LowerSteps: 5,
		Scheduled:   optim.Scheduled{LR: 1e-3, Schedule: optim.Constant, ScheduleSteps: mnistSteps, Beta1: 0.9, Beta2: 0.95},
		SampleShare: 1,
	}
}

func checkerboard(o Objective) *Config {
	c := common()
	c.Net = latent.Checkerboard()
	c.Objective, c.Sigma = o, 0.05
	return &c
}

func frey() *Config {
	c := common()
	c.Net = latent.Frey()
	c.LR = 2e-4
	return &c
}

func mnist() *Config {
	c := common()
	c.Net = latent.MNIST()
	c.Objective, c.Lower, c.Refine.Steps = MDSM, latent.Fisher, 5
	c.LR, c.Schedule = 1e-4, optim.Cosine
	return &c
}

// colour is what CIFAR-10 and CelebA share: pictures of that size.
func colour(size int) *Config {
	c := mnist()
	c.Net = latent.Colour(size, 3)
	c.Levels = score.Grid{Least: 0.05, Most: 1.2, Spacing: score.Linear}
	c.LR, c.ScheduleSteps = 5e-5, 300_000
	return c
}

func cifar() *Config { return colour(32) }

// celeba has the refinement of the released code, which is longer and shorter of
// step.
func celeba() *Config {
	c := colour(64)
	c.Refine = Refine{Steps: 50, Rate: 5e-4, Noise: 1e-4}
	return c
}
