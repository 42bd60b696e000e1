package vages

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// The values of ALGORITHMS.md §2.2, §2.3 and §3.2.
func TestPresetsAreThePapers(t *testing.T) {
	type row struct {
		objective Objective
		hidden    int
		lr        float64
		refine    Refine
		lower     latent.Divergence
		batch     int
		steps     int64
	}
	short := Refine{Steps: 5, Rate: 1e-2, Noise: 1e-4}
	none := Refine{Rate: 1e-2, Noise: 1e-4}
	want := map[string]row{
		"vages-ksd-board": {KSD, 4, 1e-3, none, latent.KL, 100, 100_000},
		"vages-dsm-board": {DSM, 4, 1e-3, none, latent.KL, 100, 100_000},
		"vages-frey":      {DSM, 400, 2e-4, none, latent.KL, 100, 20_000},
		"vages-mnist":     {MDSM, 50, 1e-4, short, latent.Fisher, 100, 100_000},
		"vages-cifar10":   {MDSM, 50, 5e-5, short, latent.Fisher, 100, 300_000},
		"vages-celeba64":  {MDSM, 50, 5e-5, Refine{Steps: 50, Rate: 5e-4, Noise: 1e-4}, latent.Fisher, 100, 300_000},
	}
	for _, p := range Method().Presets {
		c := p.Config.(*Config)
		if got := (row{c.Objective, c.Net.Hidden, c.LR, c.Refine, c.Lower, p.Batch, p.Steps}); got != want[p.Name] {
			t.Errorf("%s: got %+v, want %+v", p.Name, got, want[p.Name])
		}
		if c.LowerSteps != 5 || c.Particles != 2 || c.Bandwidth != 0.1 || c.Beta2 != 0.95 || c.Surrogate != JVP {
			t.Errorf("%s: %+v", p.Name, c)
		}
		if celeba := p.Name == "vages-celeba64"; p.Flip != celeba || strings.Contains(p.About, "crop 140") != celeba {
			t.Errorf("%s, %q: flip %v", p.Name, p.About, p.Flip)
		}
		if deep := c.Net.Kind == latent.EBLVM; deep != (c.Schedule == optim.Cosine) {
			t.Errorf("%s: schedule %s", p.Name, c.Schedule)
		}
	}
	if len(Method().Presets) != len(want) {
		t.Errorf("%d presets", len(Method().Presets))
	}
}

// The noise, the networks and the schedules of ALGORITHMS.md §2.2 and §2.3.
func TestPresetsNoiseAndNetworks(t *testing.T) {
	type row struct {
		kind          latent.Kind
		c, h, w       int
		width, depth  int
		sigma, sigma0 float64
		levels        score.Grid
		decaying      int // steps of the schedule; 0 for a constant rate
	}
	board := row{kind: latent.GRBM, c: 1, h: 1, w: 2, sigma: 0.05}
	colour := row{latent.EBLVM, 3, 32, 32, 128, 3, 0, 0.1, score.Grid{Least: 0.05, Most: 1.2, Spacing: score.Linear}, 300_000}
	large := colour
	large.h, large.w = 64, 64
	want := map[string]row{
		"vages-ksd-board": {kind: latent.GRBM, c: 1, h: 1, w: 2},
		"vages-dsm-board": board,
		"vages-frey":      {kind: latent.GRBM, c: 1, h: 28, w: 20, sigma: 0.3},
		"vages-mnist":     {latent.EBLVM, 1, 32, 32, 64, 2, 0, 0.1, score.Grid{Least: 0.1, Most: 3, Spacing: score.Log}, 100_000},
		"vages-cifar10":   colour,
		"vages-celeba64":  large,
	}
	for _, p := range Method().Presets {
		c := p.Config.(*Config)
		got := row{kind: c.Net.Kind, c: c.Net.C, h: c.Net.H, w: c.Net.W}
		switch c.Objective { // what the others have no use for is any
		case DSM:
			got.sigma = c.Sigma
		case MDSM:
			got.sigma0, got.levels = c.Sigma0, c.Levels
		}
		if c.Net.Kind == latent.EBLVM {
			got.width, got.depth, got.decaying = c.Net.Width, c.Net.Depth, c.ScheduleSteps
			if c.Net.PosteriorWidth != 64 {
				t.Errorf("%s: a posterior of width %d", p.Name, c.Net.PosteriorWidth)
			}
		}
		if got != want[p.Name] {
			t.Errorf("%s: got %+v, want %+v", p.Name, got, want[p.Name])
		}
		if c.Temperature != 0.1 || c.Beta1 != 0.9 || c.Estimator != Variational || c.WithoutCovariance || c.ControlVariate {
			t.Errorf("%s: %+v", p.Name, c)
		}
	}
}

func TestValidate(t *testing.T) {
	units := func(change func(*Config)) Config { return tinyUnits(change) }
	for want, c := range map[string]Config{
		"a covariance over --particles 1 is none":    units(func(c *Config) { c.Particles = 1 }),
		"want --particles (L) from 1 to 1000, got 0": units(func(c *Config) { c.Particles = 0 }),
		"want --lower-steps (K) from 0":              units(func(c *Config) { c.LowerSteps = -1 }),
		"--refine-steps needs a gradient":            units(func(c *Config) { c.Refine.Steps = 1 }),
		"--lower fisher needs a gradient":            units(func(c *Config) { c.Lower = latent.Fisher }),
		"--estimator exact is of --model grbm":       tinyNetworks(func(c *Config) { c.Estimator = Exact }),
		"--surrogate product is for losses":          units(func(c *Config) { c.Objective, c.Surrogate = SSM, Product }),
		"bandwidth":                                  units(func(c *Config) { c.Bandwidth = 0 }),
		"square pictures":                            tinyNetworks(func(c *Config) { c.Net.W = 16 }),
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, c := range []Config{units(func(c *Config) { c.Particles, c.WithoutCovariance = 1, true }), units(func(c *Config) { c.Particles, c.Estimator = 1, Importance })} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Each setting changes what it is called, and nothing else.
func TestSettings(t *testing.T) {
	got, want := mnist(), mnist()
	want.Particles, want.Surrogate, want.Objective, want.ControlVariate = 4, Scores, KSD, true
	want.Refine, want.Bandwidth, want.PosteriorLR, want.LowerSteps = Refine{7, 0.5, 0.25}, 0.75, 0.01, 3
	given := map[string]string{"particles": "4", "surrogate": "scores", "objective": "ksd", "control-variate": "true",
		"refine-steps": "7", "refine-rate": "0.5", "refine-noise": "0.25", "bandwidth": "0.75", "posterior-lr": "0.01", "lower-steps": "3"}
	if err := algotest.Given(got, given); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What an estimator has no use for is refused where it was changed from what the preset
// has, or from what a run has that goes on.
func TestOfNoUse(t *testing.T) {
	changed := map[string]string{"particles": "9", "surrogate": "scores", "without-covariance": "true", "control-variate": "true", "refine-rate": "0.5",
		"refine-noise": "0.25", "temperature": "0.5", "lower-steps": "50", "posterior-lr": "0.5"}
	for _, e := range estimators() {
		for flag, text := range changed {
			c := checkerboard(KSD)
			err := algotest.Given(c, map[string]string{"estimator": string(e), flag: text})
			to := fmt.Sprintf("--estimator %s", e)
			if e == Variational && strings.HasPrefix(flag, "refine-") { // of latents that are never refined
				to = "--refine-steps 0"
			} else if e == Variational || e == Importance && flag == "particles" {
				if err != nil {
					t.Error(err)
				}
				continue
			}
			want := fmt.Sprintf("--%s %s is of no use to %s: leave it out", flag, text, to)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	run := checkerboard(KSD)
	run.Estimator, run.Particles = Exact, 9 // as one that was begun before
	for _, tt := range []struct {
		c     *Config
		given map[string]string
	}{
		{run, map[string]string{"particles": "9"}},
		{frey(), map[string]string{"estimator": "exact", "particles": "2", "lower-steps": "5"}},
		{mnist(), map[string]string{"model": "grbm", "estimator": "exact", "lower": "kl", "refine-steps": "0"}}, // which such a machine needs
		{mnist(), map[string]string{"model": "grbm", "lower-steps": "0", "lower": "kl", "refine-steps": "0"}},
	} {
		if err := algotest.Given(tt.c, tt.given); err != nil {
			t.Errorf("%v: %v", tt.given, err)
		}
	}
}

// What is left out of the variational estimate, or of the loss, leaves no use for its
// settings.
func TestOfNoUseToParts(t *testing.T) {
	for _, tt := range []struct {
		c     *Config
		given map[string]string
		want  string // "" if it is accepted
	}{
		{frey(), map[string]string{"objective": "dsm", "bandwidth": "3"}, "--bandwidth 3 is of no use to --objective dsm"},
		{frey(), map[string]string{"objective": "ksd", "sigma": "3"}, "--sigma 3 is of no use to --objective ksd"},
		{frey(), map[string]string{"refine-rate": "2"}, "--refine-rate 2 is of no use to --refine-steps 0"},
		{mnist(), map[string]string{"refine-rate": "2"}, ""},
		{frey(), map[string]string{"without-covariance": "true", "surrogate": "scores"}, "--surrogate scores is of no use to --without-covariance"},
		{frey(), map[string]string{"lower-steps": "0", "posterior-lr": "2"}, "--posterior-lr 2 is of no use to --lower-steps 0"},
		{mnist(), map[string]string{"lower-steps": "0", "lower": "kl"}, "--lower kl is of no use to --lower-steps 0"},
		{mnist(), map[string]string{"temperature": "5"}, "--temperature 5 is of no use to --model eblvm"},
		{frey(), map[string]string{"width": "2"}, "--width 2 is of no use to --model grbm"},
		{frey(), map[string]string{"sample-share": "0.5"}, "--sample-share 0.5 is of no use to --model grbm"},
		{frey(), map[string]string{"schedule-steps": "5"}, "--schedule-steps 5 is of no use to --schedule constant"},
	} {
		err := algotest.Given(tt.c, tt.given)
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || tt.want == "" || !strings.HasPrefix(err.Error(), tt.want+": leave it out, or say ") {
			t.Errorf("%v: %v, want %q", tt.given, err, tt.want)
		}
	}
}

// What is wrong with the rates of both levels is told once.
func TestRatesAreToldOnce(t *testing.T) {
	for flag, text := range map[string]string{"schedule-steps": "0", "lr": "1e-7"} {
		err := algotest.Given(mnist(), map[string]string{flag: text, "schedule": "cosine"})
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "cosine schedule") {
			t.Errorf("--%s %s: got %v, want one line on the cosine schedule", flag, text, err)
		}
	}
}

// A config of scores says so: half precision is refused for it.
func TestScoreLosses(t *testing.T) {
	var c algo.Config = frey()
	if s, ok := c.(interface{ ScoreLosses() bool }); !ok || !s.ScoreLosses() {
		t.Error("its losses are not of scores")
	}
}

// A deep model out of a preset of another shape is judged by the data alone.
func TestDeepModelOfAnyPreset(t *testing.T) {
	for _, name := range []string{"vages-frey", "vages-dsm-board"} {
		p, err := Method().Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		c := p.Config.Clone().(*Config)
		if err := algotest.DeepOfAny(c, "eblvm"); err != nil || c.Net.W != 32 {
			t.Errorf("%s: %v, sizes %+v", name, err, c.Net)
		}
	}
}
