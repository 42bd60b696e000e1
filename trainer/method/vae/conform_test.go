package vae

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nets"
)

// What a VAE can do besides training.
var (
	_ algo.Networked     = (*Config)(nil)
	_ algo.Sampler       = Config{}
	_ algo.Conditional   = Config{}
	_ algo.Reconstructor = Config{}
	_ algo.Encoder       = Config{}
	_ algo.Losing        = Config{}
)

// small is a config with networks of little width for 32×32 pictures. Steps
// differ by rounding where gradients do: with ε = 1e-8 a weight whose gradient is
// rounding alone takes a whole step.
func small(family nets.Family, width int) *Config {
	c := conv(32)
	c.Net = nets.Spec{Family: family, Size: 32, Channels: 1, Width: width, Latent: 3}
	c.Adam.Eps = 1e-3
	return c
}

func TestConforms(t *testing.T) {
	published := map[string]data.Schema{"vae-cifar10": {C: 3, H: 32, W: 32}, "vae-celeba64": {C: 3, H: 64, W: 64}}
	heavy := small(nets.ConvFamily, 4)
	heavy.Beta, heavy.Variance = 4, 0.5
	algotest.Run(t, Method(), published,
		algotest.Case{Name: "convolutional", Config: heavy},
		algotest.Case{Name: "residual", Config: small(nets.ResNetFamily, 1)})
}
