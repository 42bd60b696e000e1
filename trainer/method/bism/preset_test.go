package bism

import (
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/latent"
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
	board, frey, mnist, celeba := preset(t, "bism-board-ssm"), preset(t, "bism-frey"), preset(t, "bism-mnist"), preset(t, "bism-celeba64")
	for what, ok := range map[string]bool{
		"checkerboard": board.Net.Hidden == 4 && board.LR == 1e-3 && board.Objective == SSM && board.LowerSteps == 5 && board.Unroll == 5,
		"noise":        preset(t, "bism-board-dsm").Sigma == 0.05 && frey.Sigma == 0.3,
		"frey":         frey.Net.Hidden == 400 && frey.LR == 2e-4 && frey.LowerSteps == 5 && frey.Unroll == 5 && frey.Temperature == 0.1 && frey.Lower == latent.KL,
		"mnist":        mnist.Net.Width == 64 && mnist.Net.Depth == 2 && mnist.Unroll == 0 && mnist.LowerSteps == 5 && mnist.Lower == latent.Fisher && mnist.Sigma0 == 0.1,
		"rates":        mnist.upperRate().Rate(0, 0) == 1e-4 && mnist.lowerRate().Rate(100_000, 0) == 1e-6 && celeba.LR == 5e-5,
		"celeba":       celeba.Net.Width == 128 && celeba.Net.Depth == 4 && celeba.Net.Hidden == 50,
	} {
		if !ok {
			t.Errorf("%s is not as published", what)
		}
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
		{"bism-frey", "model", "eblvm", "--model eblvm takes square pictures, got 28x20"},
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

// A config.json that was edited is checked like flags.
func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"(K) from 0 to 1000, got -1": func(c *Config) { c.LowerSteps = -1 },
		"(N) from 0 to 1000, got -3": func(c *Config) { c.Unroll = -3 },
		"betas in [0, 1)":            func(c *Config) { c.Beta2 = 1 },
		"one hidden unit":            func(c *Config) { c.Net.Hidden = 0 },
		"at least one value":         func(c *Config) { c.Net.W = 0 },
		"learning rate above 0":      func(c *Config) { c.LR = 0 },
		"--temperature":              func(c *Config) { c.Temperature = 0 },
		"--sample-share":             func(c *Config) { c.SampleShare = 2 },
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
		{"bism-board-dsm", pictures, "take a preset for pictures (bism-frey"},
		{"bism-frey", vectors, "take a preset for vectors (bism-board-dsm"},
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
