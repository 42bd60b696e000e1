package vae

import (
	"math"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/optim"
)

// The settings of BiDVL's Q and G, its batches and lengths [ALGORITHMS.md §1.4], and the
// decoder's variance.
func TestPresets(t *testing.T) {
	for name, want := range map[string]struct {
		batch int
		steps int64
	}{"vae-cifar10": {100, 300_000}, "vae-celeba64": {50, 600_000}} {
		if p, err := Method().Preset(name); err != nil || p.Batch != want.batch || p.Steps != want.steps {
			t.Errorf("%s: %v, batch %d, %d steps; want %+v", name, err, p.Batch, p.Steps, want)
		}
	}
	for _, p := range Method().Presets {
		c := p.Config.(*Config)
		if c.Net.Name() != p.Net || c.Net.Width != 64 || c.Net.Latent != 100 || c.Variance != 1 || c.Beta != 1 {
			t.Errorf("%s: %+v", p.Name, c)
		}
		if want := (optim.Adam{Name: "vae", LR: 3e-4, Beta2: 0.9, Eps: 1e-8, WeightDecay: 1e-4, Decay: 0.998}); c.Adam != want {
			t.Errorf("%s: %+v, want %+v", p.Name, c.Adam, want)
		}
	}
}

// What a user may get wrong is one sentence that names it.
func TestBadInputs(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"beta", "-0.5", "want --beta of at least 0, and finite in float32, got -0.5"},
		{"beta", "NaN", "want --beta of at least 0"},
		{"decoder-variance", "0", "want --decoder-variance above 0"},
		{"width", "6", "want --width of a multiple of 4, got 6"},
		{"latent", "0", "want --latent of at least 1, got 0"},
		{"lr", "0", "want --lr above 0"},
	} {
		err := algotest.Given(conv(32), map[string]string{tt.flag: tt.value})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--%s %s: %v, want %q", tt.flag, tt.value, err, tt.want)
		}
	}
	c := conv(32)
	for _, s := range []data.Schema{{C: 3, H: 28, W: 28}, {C: 3, H: 64, W: 64}, {C: 1, H: 1, W: 2}} {
		if err := c.Fit(s); err == nil || err.Error() != "--net conv32 takes 32x32" {
			t.Errorf("%v: %v", s, err)
		}
	}
	if err := c.SetNet("conv16"); err == nil || !strings.Contains(err.Error(), "conv32") {
		t.Errorf("unknown networks: %v", err)
	}
	c = conv(32)
	c.Beta, c.Variance = math.Inf(1), -1
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "want") != 2 {
		t.Errorf("two mistakes, one sentence each; got %v", err)
	}
}

// A config.json that was edited is checked like flags.
func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--decoder-variance above 0": func(c *Config) { c.Variance = 0 },
		"--beta of at least 0":       func(c *Config) { c.Beta = -1 },
		"vae: want Adam's beta":      func(c *Config) { c.Adam.Beta2 = 1 },
		"want a width":               func(c *Config) { c.Net.Width = 6 },
	} {
		c := conv(32)
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
