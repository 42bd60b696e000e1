package cd

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
		hidden, sweeps int
		persistent     bool
		lr             float64
		batch          int
		steps          int64
	}
	want := map[string]row{
		"cd-board":  {4, 1, false, 1e-3, 100, 100_000},
		"pcd-board": {4, 1, true, 1e-3, 100, 100_000},
		"cd-frey":   {400, 5, false, 2e-4, 100, 20_000},
	}
	m := Method()
	if m.Name != "cd" || len(m.Presets) != len(want) || m.Presets[0].Name != "cd-board" {
		t.Errorf("%+v", m)
	}
	for _, p := range m.Presets {
		c := p.Config.(*Config)
		got := row{c.Machine.Hidden, c.Sweeps, c.Persistent, c.Adam.LR, p.Batch, p.Steps}
		if want := (optim.Adam{Name: "model", LR: got.lr, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 1}); c.Adam != want {
			t.Errorf("%s: got %+v, want %+v", p.Name, c.Adam, want)
		}
		if got != want[p.Name] || p.About == "" {
			t.Errorf("%s: got %+v, want %+v", p.Name, got, want[p.Name])
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"want pictures of at least":           func(c *Config) { c.Machine.H = 0 },
		"hidden units, got 0":                 func(c *Config) { c.Machine.Hidden = 0 },
		"from 1 to 1000 Gibbs sweeps":         func(c *Config) { c.Sweeps = 0 },
		"Gibbs sweeps in a step, got 1001":    func(c *Config) { c.Sweeps = 1001 },
		"want a learning rate above 0":        func(c *Config) { c.Adam.LR = math.NaN() },
		"want Adam's betas in [0, 1), got 1 ": func(c *Config) { c.Adam.Beta1 = 1 },
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
	want.Machine.Hidden, want.Sweeps, want.Adam.LR, want.Adam.Beta1, want.Adam.Beta2 = 9, 10, 0.01, 0.5, 0.25
	given := map[string]string{"hidden": "9", "cd-steps": "10", "persistent": "true", "lr": "0.01", "beta1": "0.5", "beta2": "0.25"}
	if err := algotest.Given(got, given); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A config fits data as its machine does.
func TestFit(t *testing.T) {
	of := func(c *Config) grbmtest.Fitting { return grbmtest.Fitting{Fit: c.Fit, Machine: &c.Machine} }
	grbmtest.Fits(t, func() grbmtest.Fitting { return of(board(false)) }, func() grbmtest.Fitting { return of(frey()) }, "cd-frey")
}
