package bism

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Method is BiSM.
func Method() algo.Method {
	return algo.Method{
		Name:    "bism",
		About:   "bi-level score matching of energy-based latent variable models, with an unrolled lower level",
		Presets: presets(),
		Decode:  algo.Decoder[Config]("bism"),
	}
}

// presets are the experiments of [ALGORITHMS.md §2.2, §2.3].
func presets() []algo.Preset {
	const board, deep = 100_000, 300_000
	return []algo.Preset{
		{Name: "bism-board-dsm", About: "GRBM on the checkerboard, denoising", Config: checkerboard(DSM), Batch: 100, Steps: board},
		{Name: "bism-board-ssm", About: "GRBM on the checkerboard, sliced", Config: checkerboard(SSM), Batch: 100, Steps: board},
		{Name: "bism-frey", About: "GRBM on the Frey faces, denoising", Config: frey(), Batch: 100, Steps: 20_000},
		{Name: "bism-mnist", About: "deep model on MNIST padded to 32x32, multiscale denoising", Config: mnist(), Batch: 100, Steps: mnistSteps},
		{Name: "bism-cifar10", About: "deep model on CIFAR-10, multiscale denoising", Config: colour(32, 3), Batch: 100, Steps: deep},
		{Name: "bism-celeba64", About: "deep model on CelebA, crop 140, 64x64, mirrored at random, multiscale denoising", Config: colour(64, 4), Batch: 100, Steps: deep, Flip: true},
	}
}

const mnistSteps = 100_000

// common is what all presets share. What a preset has no use for has the value
// of one that does, so that every flag has a default.
func common() Config {
	return Config{
		Objective: DSM, Noise: score.PublishedNoise(),
		Lower: latent.KL, Temperature: 0.1, LowerSteps: 5,
		Scheduled: optim.Scheduled{LR: 1e-3, Schedule: optim.Constant, ScheduleSteps: mnistSteps, Beta1: 0.9, Beta2: 0.95},
		Inner:     Adam, SampleShare: 1,
	}
}

func checkerboard(o Objective) *Config {
	c := common()
	c.Net = latent.Checkerboard()
	c.Objective, c.Sigma, c.Unroll = o, 0.05, 5
	return &c
}

func frey() *Config {
	c := common()
	c.Net = latent.Frey()
	c.LR, c.Unroll = 2e-4, 5
	return &c
}

func mnist() *Config {
	c := common()
	c.Net = latent.MNIST()
	c.Objective, c.Lower = MDSM, latent.Fisher
	c.LR, c.Schedule = 1e-4, optim.Cosine
	return &c
}

// colour is the setting of CIFAR-10 and CelebA: pictures of that size, k blocks.
func colour(size, k int) *Config {
	c := mnist()
	c.Net = latent.Colour(size, k)
	c.Levels = score.Grid{Least: 0.05, Most: 1.2, Spacing: score.Linear}
	c.LR, c.ScheduleSteps = 5e-5, 300_000
	return c
}
