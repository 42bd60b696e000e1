package bidvl

import (
	"strings"
	"testing"

	"ebtrain/trainer/model/nets"
)

// The table of ALGORITHMS.md §1.4.
func TestPresetsAreThePapers(t *testing.T) {
	type row struct {
		net                   string
		batch                 int
		steps                 int64
		lrE, lrQ, lrG         float64
		beta1, beta2          float64
		decayE, decayQ, decay float64 // L2 of E, L2 of Q and G, of the rates
		vae, latent           float64
		fresh                 bool
		upper                 UpperLoss
	}
	conv32 := row{"conv32", 100, 300_000, 1e-4, 3e-4, 3e-4, 0, 0.9, 0, 1e-4, 0.998, 0.05, 0.01, false, Difference}
	conv64 := conv32
	conv64.net, conv64.batch, conv64.steps, conv64.vae = "conv64", 50, 600_000, 0.1
	want := map[string]row{
		"bidvl-cifar10": conv32, "bidvl-svhn": conv32, "bidvl-celeba32": conv32, "bidvl-celeba64": conv64,
		"bidvl-cifar10-resnet": {"resnet32", 100, 200_000, 2e-4, 2e-4, 2e-4, 0, 0.9, 0, 0, 0.999, 0.05, 1e-4, true, Hinge},
		"bidvl-celeba128":      {"resnet128", 36, 300_000, 2e-4, 2e-4, 2e-4, 0, 0.9, 0, 0, 0.998, 0.05, 1e-4, true, Hinge},
	}
	if len(Presets()) != len(want) {
		t.Errorf("%d presets, want %d", len(Presets()), len(want))
	}
	for _, p := range Presets() {
		c := p.Config
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		g := c.Lower
		if c.Generator != nil {
			g = *c.Generator
		}
		if (c.Generator != nil) != strings.HasPrefix(c.Net.Name(), "resnet") {
			t.Errorf("%s: three optimisers: %v", p.Name, c.Generator != nil)
		}
		for _, a := range c.optimisers() {
			if a.Beta1 != c.Upper.Beta1 || a.Beta2 != c.Upper.Beta2 || a.Decay != c.Upper.Decay || a.Eps != 1e-8 {
				t.Errorf("%s: optimiser %+v", p.Name, a)
			}
		}
		got := row{c.Net.Name(), p.Batch, p.Steps, c.Upper.LR, c.Lower.LR, g.LR, c.Upper.Beta1, c.Upper.Beta2,
			c.Upper.WeightDecay, c.Lower.WeightDecay, c.Upper.Decay, c.VAEWeight, c.Resolved().LatentWeight, c.FreshLatent, c.UpperLoss}
		if got != want[p.Name] {
			t.Errorf("%s: got  %+v\nwant %+v", p.Name, got, want[p.Name])
		}
		if c.Order != UpperFirst || c.LowerSteps != 1 || c.LatentTerm != Offset || c.LowerLevel != Symmetric || c.Ratio != ConstantRatio || c.Undecoupled {
			t.Errorf("%s is not the formal version: %+v", p.Name, c)
		}
	}
}

func TestPresetNames(t *testing.T) {
	for net, want := range map[string]string{"conv32": "bidvl-cifar10", "conv64": "bidvl-celeba64", "resnet32": "bidvl-cifar10-resnet", "resnet128": "bidvl-celeba128"} {
		if p, err := PresetFor(net); err != nil || p.Name != want {
			t.Errorf("%s: got %s, %v, want %s", net, p.Name, err, want)
		}
	}
	for _, net := range nets.Names() { // which need not all have a preset
		if p, err := PresetFor(net); err == nil && p.Config.Net.Name() != net {
			t.Errorf("%s: got a preset with the networks %s", net, p.Config.Net.Name())
		}
	}
	if _, err := PresetFor("conv16"); err == nil || !strings.Contains(err.Error(), "resnet32") {
		t.Errorf("unknown networks: got %v, want the names there are", err)
	}
}
