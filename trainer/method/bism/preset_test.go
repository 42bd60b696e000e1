package bism

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

func preset(t *testing.T, name string) *Config {
	t.Helper()
	p, err := Method().Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Config.Clone().(*Config)
}

// The data that each preset is published with.
var published = map[string]data.Schema{
	"bism-board-dsm": {C: 1, H: 1, W: 2, DType: safetensors.F32},
	"bism-board-ssm": {C: 1, H: 1, W: 2, DType: safetensors.F32},
	"bism-frey":      {C: 1, H: 28, W: 20, DType: safetensors.U8},
	"bism-mnist":     {C: 1, H: 32, W: 32, DType: safetensors.U8},
	"bism-cifar10":   {C: 3, H: 32, W: 32, DType: safetensors.U8},
	"bism-celeba64":  {C: 3, H: 64, W: 64, DType: safetensors.U8},
}

// What the papers' tables say of the presets [ALGORITHMS.md §2.2, §2.3].
func TestPublishedValues(t *testing.T) {
	grbm := Config{Objective: DSM, Lower: latent.KL, Temperature: 0.1, LowerSteps: 5, Unroll: 5, Inner: Adam, SampleShare: 1,
		Noise:     score.Noise{Sigma: 0.3, Levels: score.Grid{Least: 0.1, Most: 3, Spacing: score.Log}, Sigma0: 0.1},
		Scheduled: optim.Scheduled{LR: 1e-3, Schedule: optim.Constant, ScheduleSteps: 100_000, Beta1: 0.9, Beta2: 0.95}}
	deep := grbm
	deep.Objective, deep.Lower, deep.Unroll, deep.LR, deep.Schedule = MDSM, latent.Fisher, 0, 1e-4, optim.Cosine
	colour := deep
	colour.LR, colour.ScheduleSteps, colour.Levels = 5e-5, 300_000, score.Grid{Least: 0.05, Most: 1.2, Spacing: score.Linear}
	units := func(h, w, hidden int) latent.Net { // what is the networks' has no use here
		return latent.Net{Kind: latent.GRBM, C: 1, H: h, W: w, Hidden: hidden, Width: 64, Depth: 2, PosteriorWidth: 64}
	}
	nets := func(channels, size, width, depth int) latent.Net {
		return latent.Net{Kind: latent.EBLVM, C: channels, H: size, W: size, Hidden: 50, Width: width, Depth: depth, PosteriorWidth: 64}
	}
	for name, tt := range map[string]struct {
		common Config
		net    latent.Net
		steps  int64
		change func(c *Config)
	}{
		"bism-board-dsm": {grbm, units(1, 2, 4), 100_000, func(c *Config) { c.Sigma = 0.05 }},
		"bism-board-ssm": {grbm, units(1, 2, 4), 100_000, func(c *Config) { c.Objective, c.Sigma = SSM, 0.05 }},
		"bism-frey":      {grbm, units(28, 20, 400), 20_000, func(c *Config) { c.LR = 2e-4 }},
		"bism-mnist":     {deep, nets(1, 32, 64, 2), 100_000, func(*Config) {}},
		"bism-cifar10":   {colour, nets(3, 32, 128, 3), 300_000, func(*Config) {}},
		"bism-celeba64":  {colour, nets(3, 64, 128, 4), 300_000, func(*Config) {}},
	} {
		want := tt.common
		want.Net = tt.net
		tt.change(&want)
		p, err := Method().Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := *p.Config.(*Config); got != want || p.Batch != 100 || p.Steps != tt.steps {
			t.Errorf("%s: got  %+v, batch %d, %d steps\nwant %+v, batch 100, %d steps", name, got, p.Batch, p.Steps, want, tt.steps)
		}
		if celeba := name == "bism-celeba64"; p.Flip != celeba || strings.Contains(p.About, "crop 140") != celeba {
			t.Errorf("%s, %q: flip %v", name, p.About, p.Flip)
		}
	}
	mnist := preset(t, "bism-mnist")
	if mnist.upperRate().Rate(0) != 1e-4 || mnist.lowerRate().Rate(100_000) != 1e-6 {
		t.Error("the rates of bism-mnist do not go from 1e-4 to 1e-6")
	}
	g, _, err := mnist.Model().Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(g.Nodes()); n > 5000 {
		t.Errorf("a step of bism-mnist has %d nodes", n)
	}
}

// Settings of a user arrive.
func TestSettings(t *testing.T) {
	c := preset(t, "bism-frey")
	if err := algotest.Given(c, map[string]string{"unroll": "0", "lower-steps": "7", "inner": "sgd", "inner-lr": "0.5"}); err != nil {
		t.Fatal(err)
	}
	if c.Unroll != 0 || c.LowerSteps != 7 || c.Inner != SGD || c.lowerRate().Base != 0.5 || c.upperRate().Base != 2e-4 {
		t.Errorf("got %+v", c)
	}
}

func TestBadSettings(t *testing.T) {
	for _, tt := range []struct {
		preset, name, text, want string
	}{
		{"bism-frey", "beta2", "1", "want --beta2 of at least 0 and below 1"},
		{"bism-frey", "lower", "fisher", "those of --model grbm are Bernoulli"},
		{"bism-frey", "lower-steps", "-1", "want --lower-steps of at least 0, got -1"},
		{"bism-frey", "unroll", "-1", "want --unroll of at least 0, got -1"},
		{"bism-frey", "unroll", "1001", "want --unroll of at most 1000"},
		{"bism-frey", "objective", "score", `unknown --objective "score": want dsm, ssm or mdsm`},
		{"bism-frey", "model", "rbm", `unknown --model "rbm": want grbm or eblvm`},
		{"bism-frey", "inner", "rmsprop", "want adam or sgd"},
		{"bism-frey", "sigma", "0", "want --sigma above 0"},
		{"bism-frey", "sigma-min", "0.2", "--sigma-min 0.2 is of no use to --objective dsm: leave it out, or say --objective mdsm"},
		{"bism-frey", "sigma0", "0.2", "--sigma0 0.2 is of no use to --objective dsm"},
		{"bism-frey", "sigma-grid", "linear", "--sigma-grid linear is of no use to --objective dsm"},
		{"bism-frey", "width", "8", "--width 8 is of no use to --model grbm: leave it out, or say --model eblvm"},
		{"bism-frey", "depth", "3", "--depth 3 is of no use to --model grbm"},
		{"bism-frey", "posterior-width", "8", "--posterior-width 8 is of no use to --model grbm"},
		{"bism-frey", "sample-share", "0.5", "--sample-share 0.5 is of no use to --model grbm"},
		{"bism-frey", "schedule-steps", "5", "--schedule-steps 5 is of no use to --schedule constant: leave it out, or say --schedule cosine"},
		{"bism-mnist", "sigma-min", "4", "want noise levels that rise from above 0, got 4 to 3: --sigma-max must be above --sigma-min"},
		{"bism-mnist", "schedule-steps", "0", "at least one step"},
		{"bism-mnist", "inner-lr", "-1", "want --inner-lr of at least 0"},
		{"bism-mnist", "temperature", "NaN", "want --temperature above 0"},
	} {
		err := algotest.Given(preset(t, tt.preset), map[string]string{tt.name: tt.text})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--%s %s: got %v, want one line with %q", tt.name, tt.text, err, tt.want)
		}
	}
}

// What another model or a lower level without steps has no use for is refused where it was
// changed. A GRBM needs the divergence that it can minimise, whatever the preset has.
func TestOfNoUse(t *testing.T) {
	const none = " is of no use to --lower-steps 0 with --unroll 0: leave it out, or say --lower-steps 1 or more"
	for _, tt := range []struct {
		preset string
		given  map[string]string
		want   string // "" if it is accepted
	}{
		{"bism-mnist", map[string]string{"temperature": "5"}, "--temperature 5 is of no use to --model eblvm: leave it out, or say --model grbm"},
		{"bism-frey", map[string]string{"temperature": "5"}, ""},
		{"bism-mnist", map[string]string{"lower-steps": "0", "inner": "sgd"}, "--inner sgd" + none},
		{"bism-mnist", map[string]string{"lower-steps": "0", "inner-lr": "1"}, "--inner-lr 1" + none},
		{"bism-mnist", map[string]string{"lower-steps": "0", "same-noise": "true"}, "--same-noise true" + none},
		{"bism-mnist", map[string]string{"lower-steps": "0", "lower": "kl"}, "--lower kl" + none},
		{"bism-mnist", map[string]string{"lower-steps": "0", "unroll": "1", "inner": "sgd", "inner-lr": "1", "lower": "kl", "same-noise": "true"}, ""},
		{"bism-mnist", map[string]string{"lower-steps": "0", "model": "grbm", "lower": "kl"}, ""},
	} {
		err := algotest.Given(preset(t, tt.preset), tt.given)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && got != tt.want {
			t.Errorf("%s, %v: %v, want %q", tt.preset, tt.given, err, tt.want)
		}
	}
}

// A config.json that was edited is checked like flags.
func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"(K) from 0 to 1000, got -1":                      func(c *Config) { c.LowerSteps = -1 },
		"(N) from 0 to 1000, got -3":                      func(c *Config) { c.Unroll = -3 },
		"betas in [0, 1)":                                 func(c *Config) { c.Beta2 = 1 },
		"one hidden unit":                                 func(c *Config) { c.Net.Hidden = 0 },
		"takes square pictures, got 28x20":                func(c *Config) { c.Net.Kind = latent.EBLVM },
		"at least one value":                              func(c *Config) { c.Net.W = 0 },
		"learning rate above 0":                           func(c *Config) { c.LR = 0 },
		"--temperature":                                   func(c *Config) { c.Temperature = 0 },
		"--sample-share":                                  func(c *Config) { c.SampleShare = 2 },
		`unknown --objective "score"`:                     func(c *Config) { c.Objective = "score" },
		`unknown --lower "js"`:                            func(c *Config) { c.Lower = "js" },
		`unknown --inner "rmsprop"`:                       func(c *Config) { c.Inner = "rmsprop" },
		`unknown --schedule "line"`:                       func(c *Config) { c.Schedule = "line" },
		"of at least 1e-06, where a cosine schedule ends": func(c *Config) { c.Schedule, c.InnerLR = optim.Cosine, 1e-7 },
	} {
		c := preset(t, "bism-frey")
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// Data that a preset cannot train on are refused with what to do, and change
// nothing; a GRBM takes samples of other sizes of its kind.
func TestFit(t *testing.T) {
	vectors, pictures := published["bism-board-dsm"], published["bism-frey"]
	for _, tt := range []struct {
		preset string
		data   data.Schema
		want   string
	}{
		{"bism-board-dsm", pictures, "take one of the presets for pictures (--preset bism-frey"},
		{"bism-frey", vectors, "take one of the presets for vectors (--preset bism-board-dsm"},
		{"bism-mnist", vectors, "--model eblvm takes pictures, not vectors"},
		{"bism-mnist", pictures, "--model eblvm takes 32x32"},
		{"bism-board-dsm", data.Schema{C: 1, H: 1, W: 9, DType: safetensors.F32}, ""},
		{"bism-frey", data.Schema{C: 3, H: 8, W: 6, DType: safetensors.U8}, ""},
		{"bism-mnist", data.Schema{C: 3, H: 16, W: 16, DType: safetensors.U8}, ""},
	} {
		c, before := preset(t, tt.preset), preset(t, tt.preset)
		err := c.Fit(tt.data)
		switch {
		case tt.want == "":
			if err != nil || c.Net.C*c.Net.H*c.Net.W != tt.data.Elems() || c.Validate() != nil {
				t.Errorf("%s on %s: %v, sizes %+v", tt.preset, tt.data, err, c.Net)
			}
		case err == nil || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s on %s: got %v, want an error with %q", tt.preset, tt.data, err, tt.want)
		case !reflect.DeepEqual(c, before):
			t.Errorf("%s on %s: the config has changed", tt.preset, tt.data)
		}
	}
}

// A grid of noise levels needs a batch of two, over all ranks.
func TestBatchOfOne(t *testing.T) {
	m := preset(t, "bism-mnist").Model()
	if _, _, err := m.Step(1, 1); err == nil || !strings.Contains(err.Error(), "--batch of at least 2") {
		t.Errorf("got %v", err)
	}
	if _, _, err := m.Step(2, 1); err != nil {
		t.Error(err)
	}
	if _, _, err := preset(t, "bism-frey").Model().Step(1, 1); err != nil {
		t.Error(err)
	}
}

// All losses are of scores.
func TestScores(t *testing.T) {
	for name := range published {
		if !preset(t, name).ScoreLosses() {
			t.Errorf("%s: does not say that its losses are of scores", name)
		}
	}
}

// A deep model out of a preset of another shape is judged by the data alone.
func TestDeepModelOfAnyPreset(t *testing.T) {
	for _, name := range []string{"bism-frey", "bism-board-dsm"} {
		c := preset(t, name)
		if err := algotest.DeepOfAny(c, "eblvm"); err != nil || c.Net.W != 32 {
			t.Errorf("%s: %v, sizes %+v", name, err, c.Net)
		}
	}
}
