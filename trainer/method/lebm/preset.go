package lebm

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
)

// Method is the latent-space energy-based prior.
func Method() algo.Method {
	return algo.Method{
		Name:    "lebm",
		About:   "latent-space energy-based prior: a generator and an energy of its latents, by Langevin chains",
		Nets:    netNames(),
		Presets: presets(),
		Decode:  algo.Decoder[Config]("lebm"),
	}
}

// presets are the experiments on pictures of [ALGORITHMS.md §4].
func presets() []algo.Preset {
	preset := func(name, about string, c Config) algo.Preset {
		return algo.Preset{Name: name, About: about, Net: string(c.Net.Shape), Config: &c, Batch: 100, Steps: 70_000}
	}
	cifar := published(CIFAR10)
	cifar.PosteriorChain.Steps = 40
	return []algo.Preset{
		preset("lebm-svhn", "SVHN, 32x32", published(SVHN)),
		preset("lebm-cifar10", "CIFAR-10, 32x32", cifar),
		preset("lebm-celeba64", "CelebA, 64x64", published(CelebA64)),
		preset("lebm-celeba32", "CelebA, 32x32", celeba32()),
		text("lebm-snli", "sentences of SNLI", 256, 256),
		text("lebm-ptb", "sentences of the Penn treebank", 128, 512),
		yahoo(),
	}
}

// yahoo are texts of some hundred words, whose posterior's chain is too long for a step.
func yahoo() algo.Preset {
	p := text("lebm-yahoo", "answers of Yahoo", 512, 1024)
	p.Config.(*Config).Text.Staged = true
	return p
}

// text is an experiment on sentences of [ALGORITHMS.md §4, Text].
func text(name, about string, embed, hidden int) algo.Preset {
	c := published(LSTM)
	c.Text = usualText()
	c.Text.Embed, c.Text.Hidden = embed, hidden
	adam := optim.Adam{Name: generatorNet, LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1}
	c.Generator = adam
	adam.Name, adam.LR = energyNet, 2e-5
	c.Energy = adam
	return algo.Preset{Name: name, About: about, Net: string(LSTM), Config: &c, Batch: 32, Steps: 40_000}
}

// published is what the paper's experiments share.
func published(s Shape) Config {
	net, err := netNamed(string(s))
	if err != nil {
		panic(err) // a shape of this file
	}
	adam := func(name string, rate float64) optim.Adam {
		return optim.Adam{Name: name, LR: rate, Beta1: 0.5, Beta2: 0.999, Eps: 1e-8, Decay: 0.998}
	}
	return Config{
		Net: net, Prior: EBM,
		PriorChain: Chain{Steps: 60, Size: 0.4}, PosteriorChain: Chain{Steps: 20, Size: 0.1},
		Sigma:  0.3,
		Energy: adam(energyNet, 2e-5), Generator: adam(generatorNet, 1e-4),
	}
}

// celeba32 is not in the paper: the generator of CelebA-64 less one doubling, which
// is the shape of SVHN's, with CelebA's width and latents.
func celeba32() Config {
	c, whole := published(SVHN), published(CelebA64)
	c.Net.NGF, c.Net.Latent = whole.Net.NGF, whole.Net.Latent
	return c
}
