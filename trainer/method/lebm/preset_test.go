package lebm

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
)

// The values of ALGORITHMS.md §4.
func TestPresetsAreThePapers(t *testing.T) {
	want := map[string]struct {
		net       Net
		posterior int
	}{
		"lebm-svhn":     {Net{SVHN, 3, 100, 64, 200}, 20},
		"lebm-cifar10":  {Net{CIFAR10, 3, 128, 128, 200}, 40},
		"lebm-celeba64": {Net{CelebA64, 3, 100, 128, 200}, 20},
		"lebm-celeba32": {Net{SVHN, 3, 100, 128, 200}, 20},
	}
	for _, p := range Method().Presets {
		c, w := p.Config.(*Config), want[p.Name]
		if c.Text != nil {
			continue
		}
		if c.Net != w.net || c.PosteriorChain != (Chain{Steps: w.posterior, Size: 0.1}) || c.PriorChain != (Chain{Steps: 60, Size: 0.4}) || c.Sigma != 0.3 || p.Batch != 100 || p.Steps != 70_000 {
			t.Errorf("%s: %+v, batch %d", p.Name, c, p.Batch)
		}
		for _, a := range c.optimisers() {
			if a.Beta1 != 0.5 || a.Beta2 != 0.999 || a.Decay != 0.998 || a.Eps != 1e-8 || a.LR != map[string]float64{energyNet: 2e-5, generatorNet: 1e-4}[a.Name] {
				t.Errorf("%s: %+v", p.Name, a)
			}
		}
	}
}

// The layers of the generators do the arithmetic that ALGORITHMS.md §5.2 counts:
// 0.139, 2.18 and 0.82 GFLOP a picture.
func TestLayersAreThePapers(t *testing.T) {
	for shape, want := range map[Shape]float64{SVHN: 0.139, CIFAR10: 2.18, CelebA64: 0.82} {
		n := published(shape).Net
		in, side, macs := n.Latent, 1, 0
		for _, l := range n.layers() {
			macs += side * side * in * l.out * l.kernel * l.kernel
			side, in = (side-1)*l.stride-2*l.pad+l.kernel, l.out
		}
		if got := 2e-9 * float64(macs); !(math.Abs(got/want-1) <= 0.01) || side != shape.side() || in != 3 {
			t.Errorf("%s: %v GFLOP to %dx%dx%d, want %v", shape, got, in, side, side, want)
		}
	}
}

// The generators of twice and four times the parameters that the Gaussian prior is
// given: at small widths the first layer, which is linear in the width, counts.
func TestWidthsOfAblations(t *testing.T) {
	size := func(ngf int) float64 {
		n := published(SVHN).Net
		n.NGF = ngf
		in, all := n.Latent, 0
		for _, l := range n.layers() {
			all += l.out * (in*l.kernel*l.kernel + 1)
			in = l.out
		}
		return float64(all)
	}
	for ngf, times := range map[int]float64{25: 2, 39: 4} {
		if got := size(ngf) / size(16); !(math.Abs(got/times-1) <= 0.03) {
			t.Errorf("--ngf %d has %.2f times the parameters of 16, want about %v", ngf, got, times)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, c := range map[string]Config{
		"want --posterior-steps (K1) from 1 to 1000, got 0":                    tiny(func(c *Config) { c.PosteriorChain.Steps = 0 }),
		"want --posterior-steps (K1) from 1 to 1000, got 1001":                 tiny(func(c *Config) { c.PosteriorChain.Steps = 1001 }),
		`the networks "svhn" and settings of text do not go together`:          tiny(func(c *Config) { c.Text = usualText() }),
		`the networks "lstm" and settings of text do not go together`:          tiny(func(c *Config) { c.Net.Shape = LSTM }),
		"--prior-steps 0 leaves the samples of the EBM prior at N(0, I): take": tiny(func(c *Config) { c.PriorChain.Steps = 0 }),
		"want --prior-steps (K0) from 0 to 1000, got -1":                       tiny(func(c *Config) { c.PriorChain.Steps = -1 }),
		"want --prior-step-size above 0":                                       tiny(func(c *Config) { c.PriorChain.Size = 0 }),
		"want --posterior-step-size above 0, and finite in float32, got -1":    tiny(func(c *Config) { c.PosteriorChain.Size = -1 }),
		"want --sigma above 0":                                                 tiny(func(c *Config) { c.Sigma = math.NaN() }),
		"want --latent of at least 1, got 0":                                   tiny(func(c *Config) { c.Net.Latent = 0 }),
		"want --ngf of at least 1, got 0":                                      tiny(func(c *Config) { c.Net.NGF = 0 }),
		"want --nef of at least 1, got -2":                                     tiny(func(c *Config) { c.Net.NEF = -2 }),
		`unknown networks "mnist": want one of svhn, cifar10, celeba64`:        tiny(func(c *Config) { c.Net.Shape = "mnist" }),
		`unknown --prior "flat": want ebm or gaussian`:                         tiny(func(c *Config) { c.Prior = "flat" }),
		"energy: want a learning rate above 0":                                 tiny(func(c *Config) { c.Energy.LR = 0 }),
		"want a name for each optimiser":                                       tiny(func(c *Config) { c.Energy.Name = generatorNet }),
		"the prior's chain is annealed or has a temperature":                   tiny(func(c *Config) { c.PriorChain.Annealed = true }),
		"the prior's chain is annealed or has a temperature:":                  tiny(func(c *Config) { c.PriorChain.Temperature = 0.5 }),
		"want lengths of batches that rise from 3, got []":                     tinyText(t, func(c *Config) { c.Text.Lengths = []int{} }),
		"want lengths of batches that rise from 3, got [8 4]":                  tinyText(t, func(c *Config) { c.Text.Lengths = []int{8, 4} }),
		"want lengths of batches that rise from 3, got [2 8]":                  tinyText(t, func(c *Config) { c.Text.Lengths = []int{2, 8} }),
	} {
		err := c.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line that begins with %q", err, want)
		}
	}
	for _, c := range []Config{
		tiny(same), tiny(func(c *Config) { c.Prior, c.PriorChain.Steps = Gaussian, 0 }),
		tinyText(t, func(c *Config) { c.Text.Lengths = []int{data.MinTokens} }),
	} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Pictures of another size are a misfit that says which size is taken.
func TestFit(t *testing.T) {
	c := published(CelebA64)
	for _, size := range [][2]int{{32, 32}, {32, 64}, {64, 32}} {
		err := c.Fit(data.Schema{C: 3, H: size[0], W: size[1]})
		if m, ok := errors.AsType[*algo.Misfit](err); !ok || m.H != 64 || m.W != 64 || m.What != "--net celeba64" {
			t.Errorf("%v: got %v", size, err)
		}
	}
	if err := c.Fit(data.Schema{C: 1, H: 64, W: 64}); err != nil || c.Net.Channels != 1 {
		t.Errorf("got %v and %d channels", err, c.Net.Channels)
	}
	want := algo.Inputs{Shape: graph.D(1, 64, 64), Range: loader.Symmetric} // as tanh ends the generator
	if got := c.Model().Takes(); !reflect.DeepEqual(got, want) {
		t.Errorf("it takes %+v, want %+v", got, want)
	}
}

// Each setting changes what it is called, and nothing else.
func TestSettings(t *testing.T) {
	got, want := published(SVHN), published(SVHN)
	want.PriorChain, want.PosteriorChain, want.Sigma = Chain{Steps: 5, Size: 0.25}, Chain{Steps: 6, Size: 0.5}, 0.75
	want.Net.Latent, want.Net.NGF, want.Net.NEF = 7, 8, 9
	want.Generator.LR, want.Energy.LR = 0.01, 0.02
	want.Generator.Decay, want.Energy.Decay, want.Generator.Beta1, want.Energy.Beta1 = 0.5, 0.5, 0.25, 0.25
	want.Generator.Beta2, want.Energy.Beta2 = 0.75, 0.75
	given := map[string]string{"prior": "ebm", "prior-steps": "5", "prior-step-size": "0.25", "posterior-steps": "6", "posterior-step-size": "0.5",
		"sigma": "0.75", "latent": "7", "ngf": "8", "nef": "9", "lr-generator": "0.01", "lr-energy": "0.02", "lr-decay": "0.5", "beta1": "0.25", "beta2": "0.75"}
	if err := algotest.Given(&got, given); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	// What a fixed prior has no use for is not taken, but at its usual value.
	for name, text := range map[string]string{"prior-steps": "5", "prior-step-size": "0.25", "nef": "9", "lr-energy": "0.02"} {
		fixed := published(SVHN)
		want := "--" + name + " " + text + " is of no use to --prior gaussian: leave it out, or say --prior ebm"
		if err := algotest.Given(&fixed, map[string]string{"prior": "gaussian", name: text}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// An annealed chain has sizes of its own.
	for flag, want := range map[string]string{
		"posterior-step-size":   "--posterior-step-size 0.5 is of no use to --posterior-annealed",
		"posterior-temperature": "",
	} {
		cold := published(SVHN)
		err := algotest.Given(&cold, map[string]string{"posterior-annealed": "true", flag: "0.5"})
		if want == "" && (err != nil || cold.PosteriorChain != Chain{Steps: 20, Size: 0.1, Annealed: true, Temperature: 0.5}) || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got %v and %+v, want %q", flag, err, cold.PosteriorChain, want)
		}
	}
	fixed := published(SVHN)
	if err := algotest.Given(&fixed, map[string]string{"prior": "gaussian", "prior-steps": "60", "posterior-steps": "6"}); err != nil || fixed.Prior != Gaussian || fixed.PosteriorChain.Steps != 6 {
		t.Errorf("got %+v, %v", fixed, err)
	}
	c := published(CIFAR10)
	c.Prior = Gaussian
	if err := c.SetNet("celeba64"); err != nil || c.Net != published(CelebA64).Net || c.Prior != Gaussian {
		t.Errorf("got %+v, %v", c, err)
	}
}
