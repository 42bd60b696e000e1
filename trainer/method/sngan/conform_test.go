package sngan

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nets"
)

// What a GAN can do besides training.
var (
	_ algo.Networked   = (*Config)(nil)
	_ algo.Grouped     = Config{}
	_ algo.Sampler     = Config{}
	_ algo.Conditional = Config{}
)

// It has neither energies nor reconstructions, nor a loss of held-out pictures,
// so nothing that asks for one can mistake D for it.
func TestNoEnergyAndNoReconstruction(t *testing.T) {
	var m any = Config{}
	for name, has := range map[string]bool{
		"an energy": is[algo.Energetic](m), "reconstructions": is[algo.Reconstructor](m),
		"codes": is[algo.Encoder](m), "a loss": is[algo.Losing](m), "a score": is[algo.Scored](m),
	} {
		if has {
			t.Errorf("it has %s", name)
		}
	}
}

func is[T any](m any) bool {
	_, ok := m.(T)
	return ok
}

// small is a config with tiny networks. Steps differ by rounding where gradients
// do: with ε = 1e-8 a weight whose gradient is rounding alone takes a whole step.
func small(updates int) *Config {
	c := mimicry(32, updates, "linear")
	c.Net = nets.ResNet{Size: 32, Channels: 1, Width: 1, Latent: 3}
	c.Adam.Eps = 1e-3
	return c
}

func TestConforms(t *testing.T) {
	picture := func(size int) data.Schema { return data.Schema{C: 3, H: size, W: size} }
	published := map[string]data.Schema{"sngan-cifar10": picture(32), "sngan-celeba64": picture(64), "sngan-celeba128": picture(128)}
	first := small(1)
	first.Net.Nearest, first.Net.NoOutputBias, first.Net.PlainShortcut, first.Schedule = true, true, true, "constant"
	cases := []algotest.Case{{Name: "three updates", Config: small(3)}}
	if !testing.Short() {
		cases = append(cases, algotest.Case{Name: "one update", Config: first})
	}
	algotest.Run(t, Method(), published, cases...)
}
