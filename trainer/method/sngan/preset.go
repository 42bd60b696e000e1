package sngan

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
)

// Method is SNGAN for the programs.
func Method() algo.Method {
	preset := func(name, about string, size, updates int, schedule optim.Kind) algo.Preset {
		c := mimicry(size, updates, schedule)
		return algo.Preset{Name: name, About: about, Net: c.Net.Name(), Config: c, Batch: updates * batch, Steps: steps}
	}
	return algo.Method{
		Name:  "sngan",
		About: "generative adversarial network with spectral norm: residual generator and discriminator, hinge loss",
		Nets:  netNames(),
		Presets: []algo.Preset{
			preset("sngan-cifar10", "CIFAR-10, 32x32, five updates of 64 pictures for the discriminator", 32, 5, optim.Linear),
			preset("sngan-celeba64", "CelebA, 64x64, five updates of 64 pictures for the discriminator", 64, 5, optim.Linear),
			preset("sngan-celeba128", "CelebA, 128x128, two updates of 64 pictures for the discriminator", 128, 2, optim.Constant),
		},
		Decode: algo.Decoder[Config]("sngan"),
	}
}

// Of every published run: pictures of one update, and steps.
const (
	batch = 64
	steps = 100_000
)

// mimicry are the settings of Mimicry's table.
func mimicry(size, updates int, schedule optim.Kind) *Config {
	return &Config{
		Net: published(size), Updates: updates,
		Adam:     optim.Adam{Name: "sngan", LR: 2e-4, Beta2: 0.9, Eps: 1e-8, Decay: 1},
		Schedule: schedule, ScheduleSteps: steps,
	}
}
