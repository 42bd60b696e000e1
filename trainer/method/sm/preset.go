package sm

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// Method is score matching.
func Method() algo.Method {
	return algo.Method{
		Name:    "sm",
		About:   "score matching of a Gaussian RBM (exact, sliced or denoising) or of a visible energy-based model (multiscale denoising)",
		Presets: presets(),
		Decode:  algo.Decoder[Config]("sm"),
	}
}

const mnistSteps = 100_000

// presets are the baselines of [ALGORITHMS.md §2.2, §2.3].
func presets() []algo.Preset {
	return []algo.Preset{
		{Name: "sm-board-ssm", About: "GRBM on the checkerboard, score matching", Config: checkerboard(SSM), Batch: 100, Steps: 100_000},
		{Name: "sm-board-dsm", About: "GRBM on the checkerboard, denoising", Config: checkerboard(DSM), Batch: 100, Steps: 100_000},
		{Name: "sm-frey", About: "GRBM on the Frey faces, denoising", Config: frey(), Batch: 100, Steps: 20_000},
		{Name: "mdsm-mnist", About: "visible energy-based model on MNIST padded to 32x32, multiscale denoising", Config: mnist(), Batch: 100, Steps: mnistSteps},
	}
}

// common is what all presets share. What a preset has no use for has the value
// of one that does, so that every flag has a default.
func common() Config {
	return Config{
		Net:   Net{Kind: GRBM, Hidden: 400, Width: 64, Depth: 2},
		Trace: Exact, Noise: score.PublishedNoise(),
		Scheduled:   optim.Scheduled{LR: 1e-3, Schedule: optim.Constant, ScheduleSteps: mnistSteps, Beta1: 0.9, Beta2: 0.95},
		SampleShare: 1,
	}
}

func checkerboard(o Objective) *Config {
	c := common()
	c.Net.C, c.Net.H, c.Net.W, c.Net.Hidden = 1, 1, 2, 4
	c.Objective, c.Sigma = o, 0.05
	return &c
}

func frey() *Config {
	c := common()
	c.Net.C, c.Net.H, c.Net.W = 1, 28, 20
	c.Objective, c.LR = DSM, 2e-4
	return &c
}

func mnist() *Config {
	c := common()
	c.Net.Kind, c.Net.C, c.Net.H, c.Net.W = EBM, 1, 32, 32
	c.Objective, c.Trace = MDSM, Sliced
	c.LR, c.Schedule = 1e-4, optim.Cosine
	return &c
}
