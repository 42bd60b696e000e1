package fisher

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/optim"
)

func TestConforms(t *testing.T) {
	var cases []algotest.Case
	for name, c := range kinds {
		cases = append(cases, algotest.Case{Name: name, Config: &c})
	}
	algotest.Run(t, Method(), map[string]data.Schema{"fisher-200": {C: 1, H: 1, W: 200}, "fisher-500": {C: 1, H: 1, W: 500}}, cases...)
}

// The values of ALGORITHMS.md §3.3.
func TestPresetsAreThePapers(t *testing.T) {
	for i, d := range []int{200, 500} {
		p := Method().Presets[i]
		c := p.Config.(*Config)
		if c.Machine != (grbm.Spec{C: 1, H: 1, W: d, Hidden: d}) || p.Batch != 100 || p.Steps != 20_000 || c.Particles != 1 || c.LowerSteps != 5 || c.Temperature != 0.1 {
			t.Errorf("%s: %+v", p.Name, c)
		}
		if want := (optim.Adam{Name: "critic", LR: 2e-4, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1}); c.Adam != want {
			t.Errorf("%s: %+v", p.Name, c.Adam)
		}
		// Published is VaES; the exact score is what it is measured against.
		if want := "--estimator variational"; c.Estimator != Exact || !strings.Contains(p.About, want) {
			t.Errorf("%s: %s estimator, and %q does not say %q", p.Name, c.Estimator, p.About, want)
		}
	}
}

func TestFit(t *testing.T) {
	c := with(200)
	if err := c.Fit(data.Schema{C: 1, H: 1, W: 2}); err == nil || !strings.Contains(err.Error(), "takes 1×1×200 (channels×height×width), not 1×1×2") {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"rho":                          func(c *Config) { c.Rho = math.NaN() },
		"temperature":                  func(c *Config) { c.Temperature = 0 },
		"want --particles from 1":      func(c *Config) { c.Particles = 0 },
		"want --lower-steps from 0":    func(c *Config) { c.LowerSteps = -1 },
		"estimator":                    func(c *Config) { c.Estimator = "importance" },
		"hidden units, got 0":          func(c *Config) { c.Machine.Hidden = 0 },
		"want a learning rate above 0": func(c *Config) { c.Adam.LR = 0 },
	} {
		c := with(200)
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Each setting changes what it is called, and nothing else.
func TestSettings(t *testing.T) {
	got, want := with(200), with(200)
	want.Rho, want.Estimator, want.Particles, want.LowerSteps, want.Temperature = 0.6, Variational, 3, 0, 0.5
	want.Adam.LR, want.Adam.Beta1, want.Adam.Beta2, want.Machine.Hidden = 0.01, 0.5, 0.25, 7
	given := map[string]string{"rho": "0.6", "estimator": "variational", "particles": "3", "lower-steps": "0", "temperature": "0.5",
		"lr": "0.01", "beta1": "0.5", "beta2": "0.25", "hidden": "7"}
	if err := algotest.Given(got, given); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What is of the variational estimate alone is refused beside the exact score where it was
// changed from what the preset has, or from what a run has that goes on.
func TestOfNoUse(t *testing.T) {
	changed := map[string]string{"particles": "3", "lower-steps": "0", "temperature": "0.5"}
	for flag, text := range changed {
		want := "--" + flag + " " + text + " is of no use to --estimator exact: leave it out"
		if err := algotest.Given(with(200), map[string]string{flag: text}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := algotest.Given(with(200), map[string]string{flag: text, "estimator": "variational"}); err != nil {
			t.Error(err)
		}
	}
	run := with(200)
	run.Particles = 3 // as one that was begun before
	if err := algotest.Given(run, map[string]string{"particles": "3", "lower-steps": "5"}); err != nil {
		t.Error(err)
	}
}
