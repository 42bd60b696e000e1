package sm

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/trainer/algo/algotest"
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
	"sm-board-ssm": {C: 1, H: 1, W: 2, DType: safetensors.F32},
	"sm-board-dsm": {C: 1, H: 1, W: 2, DType: safetensors.F32},
	"sm-frey":      {C: 1, H: 28, W: 20, DType: safetensors.U8},
	"mdsm-mnist":   {C: 1, H: 32, W: 32, DType: safetensors.U8},
}

// The columns of ALGORITHMS.md §2.2, and §2.3's of MNIST.
func TestPublishedValues(t *testing.T) {
	common := Config{Net: Net{Kind: GRBM, Hidden: 400, Width: 64, Depth: 2}, Trace: Exact, SampleShare: 1,
		Noise:     score.Noise{Sigma: 0.3, Levels: score.Grid{Least: 0.1, Most: 3, Spacing: score.Log}, Sigma0: 0.1},
		Scheduled: optim.Scheduled{LR: 1e-3, Schedule: optim.Constant, ScheduleSteps: 100_000, Beta1: 0.9, Beta2: 0.95}}
	for name, tt := range map[string]struct {
		steps  int64
		change func(c *Config)
	}{
		"sm-board-ssm": {100_000, func(c *Config) {
			c.Objective, c.Sigma, c.Net.C, c.Net.H, c.Net.W, c.Net.Hidden = SSM, 0.05, 1, 1, 2, 4
		}},
		"sm-board-dsm": {100_000, func(c *Config) {
			c.Objective, c.Sigma, c.Net.C, c.Net.H, c.Net.W, c.Net.Hidden = DSM, 0.05, 1, 1, 2, 4
		}},
		"sm-frey": {20_000, func(c *Config) { c.Objective, c.LR, c.Net.C, c.Net.H, c.Net.W = DSM, 2e-4, 1, 28, 20 }},
		"mdsm-mnist": {100_000, func(c *Config) {
			c.Objective, c.Trace, c.LR, c.Schedule = MDSM, Sliced, 1e-4, optim.Cosine
			c.Net.Kind, c.Net.C, c.Net.H, c.Net.W = EBM, 1, 32, 32
		}},
	} {
		want := common
		tt.change(&want)
		p, err := Method().Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := *p.Config.(*Config); got != want || p.Batch != 100 || p.Steps != tt.steps {
			t.Errorf("%s: got  %+v, batch %d, %d steps\nwant %+v, batch 100, %d steps", name, got, p.Batch, p.Steps, want, tt.steps)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, tt := range []struct {
		preset, name, text, want string
	}{
		{"sm-frey", "objective", "score", `unknown --objective "score": want ssm, dsm or mdsm`},
		{"sm-frey", "model", "rbm", `unknown --model "rbm": want grbm or ebm`},
		{"sm-frey", "sigma", "0", "want --sigma above 0"},
		{"sm-frey", "hidden", "0", "want --hidden of at least 1"},
		{"sm-frey", "beta2", "1", "want --beta2 of at least 0 and below 1"},
		{"mdsm-mnist", "objective", "ssm", ""},
		{"mdsm-mnist", "sigma", "0.2", "--sigma 0.2 is of no use to --objective mdsm: leave it out, or say --objective dsm"},
		{"mdsm-mnist", "trace", "exact", "--trace exact is of no use to --objective mdsm"},
		{"mdsm-mnist", "hidden", "7", "--hidden 7 is of no use to --model ebm"},
		{"sm-frey", "width", "8", "--width 8 is of no use to --model grbm"},
		{"mdsm-mnist", "sigma-max", "0.05", "noise levels that rise"},
		{"mdsm-mnist", "schedule-steps", "0", "cosine schedule over at least one step"},
		{"mdsm-mnist", "sample-share", "2", "want --sample-share above 0 and at most 1"},
	} {
		err := algotest.Given(preset(t, tt.preset), map[string]string{tt.name: tt.text})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with --%s %s: got %v, want an error with %q", tt.preset, tt.name, tt.text, err, tt.want)
		}
	}
	c := preset(t, "mdsm-mnist")
	if err := algotest.Given(c, map[string]string{"objective": "ssm", "trace": "exact"}); err == nil || !strings.Contains(err.Error(), "--trace sliced") {
		t.Errorf("an exact trace of a network: got %v", err)
	}
}

// A config.json that was edited is checked like flags.
func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`unknown --model "rbm"`:            func(c *Config) { c.Net.Kind = "rbm" },
		`unknown --objective "score"`:      func(c *Config) { c.Objective = "score" },
		`unknown --trace "none"`:           func(c *Config) { c.Trace = "none" },
		`unknown --schedule "line"`:        func(c *Config) { c.Schedule = "line" },
		"--sample-share":                   func(c *Config) { c.SampleShare = 2 },
		"--sigma above 0":                  func(c *Config) { c.Sigma = 0 },
		"learning rate above 0":            func(c *Config) { c.LR = 0 },
		"betas in [0, 1)":                  func(c *Config) { c.Beta2 = 1 },
		"one hidden unit":                  func(c *Config) { c.Net.Hidden = 0 },
		"takes square pictures, got 28x20": func(c *Config) { c.Net.Kind = EBM },
		"at least one value":               func(c *Config) { c.Net.W = 0 },
	} {
		c := preset(t, "sm-frey")
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestMisfits(t *testing.T) {
	board, frey, mnist := published["sm-board-ssm"], published["sm-frey"], published["mdsm-mnist"]
	for _, tt := range []struct {
		preset string
		schema data.Schema
		want   string // "" fits
	}{
		{"sm-board-ssm", frey, "give --data of vectors"},
		{"sm-board-ssm", data.Schema{C: 1, H: 1, W: 200, DType: safetensors.F32}, ""},
		{"sm-frey", board, "give --data of pictures"},
		{"sm-frey", mnist, ""},
		{"mdsm-mnist", board, "give --data of pictures"},
		{"mdsm-mnist", frey, "--model ebm takes 32x32"},
		{"mdsm-mnist", data.Schema{C: 1, H: 28, W: 28, DType: safetensors.U8}, "--model ebm takes 32x32"},
		{"mdsm-mnist", data.Schema{C: 3, H: 64, W: 64, DType: safetensors.U8}, ""},
	} {
		c := preset(t, tt.preset)
		err := c.Fit(tt.schema)
		switch {
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s on %v: got %v, want an error with %q", tt.preset, tt.schema, err, tt.want)
		case tt.want == "" && (err != nil || c.Net.C != tt.schema.C || c.Net.H != tt.schema.H || c.Net.W != tt.schema.W):
			t.Errorf("%s on %v: got %v and %+v", tt.preset, tt.schema, err, c.Net)
		}
	}
}

// A grid of noise levels needs two places in the global batch, whichever ranks
// hold them.
func TestBatchOfOne(t *testing.T) {
	m := preset(t, "mdsm-mnist").Model()
	if _, _, err := m.Step(1, 1); err == nil || !strings.Contains(err.Error(), "--batch of at least 2") {
		t.Errorf("one sample: got %v", err)
	}
	if _, _, err := m.Step(2, 1); err != nil {
		t.Errorf("one sample on each of two ranks: %v", err)
	}
	if _, _, err := preset(t, "sm-frey").Model().Step(1, 1); err != nil {
		t.Errorf("one sample at one noise level: %v", err)
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
	for _, name := range []string{"sm-frey", "sm-board-dsm"} {
		c := preset(t, name)
		if err := algotest.DeepOfAny(c, "ebm"); err != nil || c.Net.W != 32 {
			t.Errorf("%s: %v, sizes %+v", name, err, c.Net)
		}
	}
}
