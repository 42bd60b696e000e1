package sngan

import (
	"fmt"

	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/generate"
	"ebtrain/trainer/model/nn"
)

// Sample draws n pictures G(h), h ~ N(0, I).
func (c Config) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	if err := c.Net.Validate(); err != nil {
		return chain.Plan{}, fmt.Errorf("sngan: %w", err)
	}
	return c.draws().Sample(mode, n)
}

// SampleGiven draws G(h) for given latents.
func (c Config) SampleGiven(n int) (chain.Plan, error) {
	if err := c.Net.Validate(); err != nil {
		return chain.Plan{}, fmt.Errorf("sngan: %w", err)
	}
	return c.draws().Given(n)
}

func (c Config) draws() generate.Net {
	return generate.Net{Latent: c.Net.Latent, Picture: c.Takes().Shape, G: c.Net.Generator}
}
