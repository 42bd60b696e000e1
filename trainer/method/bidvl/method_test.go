package bidvl

import (
	"encoding/json"
	"reflect"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/setting"
)

// What BiDVL can do besides training.
var (
	_ algo.Networked     = (*Config)(nil)
	_ algo.Sampler       = Config{}
	_ algo.Reconstructor = Config{}
	_ algo.Energetic     = Config{}
	_ algo.Encoder       = Config{}
)

// A preset's settings, read back from their own text, are the preset's; so is
// its JSON, decoded.
func TestSettingsGoRound(t *testing.T) {
	m := Method()
	for _, p := range m.Presets {
		c := p.Config.Clone()
		var s setting.Set
		c.Settings(&s)
		for _, one := range s.All() {
			if one.Help == "" || one.Place == "" {
				t.Errorf("--%s has no help or no place", one.Name)
			}
			if err := one.Set(one.String()); err != nil {
				t.Errorf("%s: --%s: %v", p.Name, one.Name, err)
			}
		}
		if err := s.Finish(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if !reflect.DeepEqual(c, p.Config) {
			t.Errorf("%s: %+v became %+v", p.Name, p.Config, c)
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := m.Decode(raw); err != nil || !reflect.DeepEqual(d, c) {
			t.Errorf("%s: decoded %+v, %v", p.Name, d, err)
		}
	}
}

// A clone shares nothing.
func TestClone(t *testing.T) {
	c := CIFAR10ResNet().Config
	d := c.Clone().(*Config)
	d.Generator.LR, d.Net.Width = 7, 4
	if c.Generator.LR == 7 || c.Net.Width == 4 {
		t.Error("the original changed with its clone")
	}
}

func TestFit(t *testing.T) {
	c := CIFAR10().Config
	if err := c.Fit(data.Schema{C: 1, H: 32, W: 32}); err != nil || c.Net.Channels != 1 || c.LatentWeight != 0.01 {
		t.Errorf("%v: %+v", err, c)
	}
	for _, s := range []data.Schema{{C: 3, H: 28, W: 32}, {C: 3, H: 64, W: 64}} {
		if err := c.Fit(s); err == nil || err.Error() != "--net conv32 takes 32x32" {
			t.Errorf("%v: %v", s, err)
		}
	}
	if err := c.SetNet("resnet128"); err != nil || c.Net.Name() != "resnet128" || c.Net.Family != nets.ResNetFamily {
		t.Errorf("%v: %v", c.Net, err)
	}
}
