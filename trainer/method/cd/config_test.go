package cd

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
)

// The columns of algorithms.md §2.2.
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
		if got != want[p.Name] || c.Adam.Beta1 != 0.9 || c.Adam.Beta2 != 0.95 || p.About == "" {
			t.Errorf("%s: got %+v and %+v, want %+v", p.Name, got, c.Adam, want[p.Name])
		}
	}
}

// Every preset fits its data, is valid, is read back from its JSON, and builds at
// full size on one rank and on two.
func TestPresetsBuild(t *testing.T) {
	schemas := map[string]data.Schema{"board": {C: 1, H: 1, W: 2}, "frey": {C: 1, H: 28, W: 20}}
	m := Method()
	for _, p := range m.Presets {
		_, kind, _ := strings.Cut(p.Name, "-")
		c := p.Config.Clone()
		if err := c.Fit(schemas[kind]); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if reflect.DeepEqual(c, p.Config) {
			t.Errorf("%s: the preset itself has been fitted", p.Name)
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := m.Decode(raw); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %s reads back as %+v, %v", p.Name, raw, back, err)
		}
		for _, world := range []int{1, 2} {
			if _, _, err := c.Model().Step(world, p.Batch/world); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		if got, s := c.Model().Takes().Shape, schemas[kind]; got != graph.D(s.C, s.H, s.W) {
			t.Errorf("%s takes %v", p.Name, got)
		}
	}
	if _, err := m.Decode([]byte(`{"Width": 3}`)); err == nil || !strings.Contains(err.Error(), "not the settings of cd") {
		t.Errorf("another method's settings: %v", err)
	}
}

// A run's sizes stay as they are, and vectors are not pictures.
func TestFitRefuses(t *testing.T) {
	c := board(false)
	if err := c.Fit(data.Schema{C: 3, H: 32, W: 32}); err == nil || !strings.Contains(err.Error(), "this model takes 1×1×any") {
		t.Errorf("pictures: %v", err)
	}
	if err := c.Fit(data.Schema{C: 1, H: 1, W: 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.Fit(data.Schema{C: 1, H: 1, W: 3}); err == nil || !strings.Contains(err.Error(), "takes 1×1×2 (channels×height×width), not 1×1×3") {
		t.Errorf("another size than the run's: %v", err)
	}
}

// Each setting changes what it is called, and nothing else, and keeps its range.
func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		good   string
		change func(c *Config)
		bad    string
	}{
		"hidden":     {"9", func(c *Config) { c.Machine.Hidden = 9 }, "0"},
		"cd-steps":   {"10", func(c *Config) { c.Sweeps = 10 }, "0"},
		"persistent": {"true", func(c *Config) { c.Persistent = true }, ""},
		"lr":         {"0.01", func(c *Config) { c.Adam.LR = 0.01 }, "-1"},
		"beta1":      {"0.5", func(c *Config) { c.Adam.Beta1 = 0.5 }, "1"},
		"beta2":      {"0.5", func(c *Config) { c.Adam.Beta2 = 0.5 }, "1"},
	} {
		set := func(text string) (*Config, error) {
			c := board(false)
			var s setting.Set
			c.Settings(&s)
			if len(s.All()) != 6 {
				t.Errorf("%d settings", len(s.All()))
			}
			for _, one := range s.All() {
				if one.Name == name {
					if err := one.Set(text); err != nil {
						return nil, err
					}
				}
			}
			return c, s.Finish()
		}
		got, err := set(tt.good)
		want := board(false)
		tt.change(want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("--%s %s: got %+v, %v", name, tt.good, got, err)
		}
		if tt.bad != "" {
			if _, err := set(tt.bad); err == nil || !strings.Contains(err.Error(), "--"+name) {
				t.Errorf("--%s %s: got %v", name, tt.bad, err)
			}
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
