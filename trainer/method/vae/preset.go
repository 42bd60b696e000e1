package vae

import (
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
)

// Method is the VAE for the programs.
func Method() algo.Method {
	return algo.Method{
		Name:  "vae",
		About: "variational autoencoder: inference net and generator of BiDVL, evidence lower bound",
		Nets:  nets.Names(),
		Presets: []algo.Preset{
			{Name: "vae-cifar10", About: "CIFAR-10, 32x32, convolutional networks", Net: "conv32", Config: conv(32), Batch: 100, Steps: 300_000},
			{Name: "vae-celeba64", About: "CelebA, crop 160, 64x64, convolutional networks", Net: "conv64", Config: conv(64), Batch: 50, Steps: 600_000},
		},
		Decode: algo.Decoder[Config]("vae"),
	}
}

// conv is the comparison that BiDVL's paper cites: its networks, its optimiser of
// Q and G, its numbers of steps [ALGORITHMS.md §1.4], and the decoder's variance
// of 1 that the cited error of reconstruction speaks for (DESIGN.md).
func conv(size int) *Config {
	return &Config{
		Net:      nets.Spec{Family: nets.ConvFamily, Size: size, Channels: 3, Width: 64, Latent: 100},
		Variance: 1, Beta: 1,
		Adam: optim.Adam{Name: "vae", LR: 3e-4, Beta2: 0.9, Eps: 1e-8, WeightDecay: 1e-4, Decay: 0.998},
	}
}
