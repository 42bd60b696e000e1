package nce

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/grbm/grbmtest"
	"ebtrain/trainer/model/optim"
)

// The columns of ALGORITHMS.md §2.2.
func TestPresetsAreThePapers(t *testing.T) {
	type row struct {
		hidden      int
		variational bool
		lr          float64
		batch       int
		steps       int64
	}
	want := map[string]row{
		"nce-board":  {4, false, 1e-3, 100, 100_000},
		"vnce-board": {4, true, 1e-3, 100, 100_000},
		"vnce-frey":  {400, true, 2e-4, 100, 20_000},
	}
	m := Method()
	if m.Name != "nce" || len(m.Presets) != len(want) || m.Presets[0].Name != "nce-board" {
		t.Errorf("%+v", m)
	}
	for _, p := range m.Presets {
		c := p.Config.(*Config)
		got := row{c.Machine.Hidden, c.Variational, c.Adam.LR, p.Batch, p.Steps}
		if want := (optim.Adam{Name: "model", LR: got.lr, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 1}); c.Adam != want {
			t.Errorf("%s: got %+v, want %+v", p.Name, c.Adam, want)
		}
		if got != want[p.Name] || p.About == "" {
			t.Errorf("%s: got %+v, want %+v", p.Name, got, want[p.Name])
		}
		if c.PosteriorSteps != 5 || c.NoiseLatents != 5 || c.Temperature != 0.1 {
			t.Errorf("%s: %+v", p.Name, c)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"want pictures of at least":            func(c *Config) { c.Machine.H = 0 },
		"hidden units, got 0":                  func(c *Config) { c.Machine.Hidden = 0 },
		"steps on the posterior, got -1":       func(c *Config) { c.PosteriorSteps = -1 },
		"latents for each noise sample, got 0": func(c *Config) { c.NoiseLatents = 0 },
		"temperature above 0":                  func(c *Config) { c.Temperature = 0 },
		"want a learning rate above 0":         func(c *Config) { c.Adam.LR = math.NaN() },
		"want Adam's betas in [0, 1), got 1 ":  func(c *Config) { c.Adam.Beta1 = 1 },
	} {
		c := board(false)
		c.Machine.W = 2
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// What evaluation can ask of the model is what a machine can do.
var (
	_ algo.Sampler      = Model{}
	_ algo.Energetic    = Model{}
	_ algo.Normalised   = Model{}
	_ algo.Scored       = Model{}
	_ algo.FisherScored = Model{}
)

// Each setting changes what it is called, and nothing else.
func TestSettings(t *testing.T) {
	got, want := board(false), board(true)
	want.Machine.Hidden, want.PosteriorSteps, want.NoiseLatents, want.Temperature = 9, 7, 1, 0.5
	want.Adam.LR, want.Adam.Beta1, want.Adam.Beta2 = 0.01, 0.5, 0.25
	given := map[string]string{"hidden": "9", "variational": "true", "posterior-steps": "7", "noise-latents": "1", "temperature": "0.5",
		"lr": "0.01", "beta1": "0.5", "beta2": "0.25"}
	if err := algotest.Given(got, given); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What is of the variational kind alone is refused without it, and so is not set in vain.
func TestSettingsOfNoUse(t *testing.T) {
	for flag, value := range map[string]string{"posterior-steps": "0", "noise-latents": "1", "temperature": "0.5"} {
		want := "--" + flag + " " + value + " is of no use to NCE, which has no posterior: leave it out, or say --variational"
		for _, c := range []*Config{board(false), frey()} {
			err := algotest.Given(c, map[string]string{flag: value, "variational": "false"})
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if err := algotest.Given(board(true), map[string]string{flag: value}); err != nil {
			t.Error(err)
		}
	}
}

// A config fits data as its machine does.
func TestFit(t *testing.T) {
	of := func(c *Config) grbmtest.Fitting { return grbmtest.Fitting{Fit: c.Fit, Machine: &c.Machine} }
	grbmtest.Fits(t, func() grbmtest.Fitting { return of(board(false)) }, func() grbmtest.Fitting { return of(frey()) }, "vnce-frey")
}
