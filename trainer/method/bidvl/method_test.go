package bidvl

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
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

// The help of --lr says when it is the generator's rate: not of the presets that have an
// optimiser for it.
func TestRateOfTheGenerator(t *testing.T) {
	for _, p := range Presets() {
		c, own := p.Config, p.Config.Generator != nil
		if err := algotest.Given(&c, map[string]string{"lr": "1e-5"}); err != nil || own && c.Generator.LR == 1e-5 || !own && c.Generator != nil {
			t.Errorf("%s: %v, %+v", p.Name, err, c.Generator)
		}
		if err := algotest.Given(&c, map[string]string{"lr-generator": "0"}); err != nil || c.Generator != nil {
			t.Errorf("%s: %v, %+v", p.Name, err, c.Generator)
		}
		s := new(setting.Set)
		c.Settings(s)
		for _, one := range s.All() {
			if want := "for the generator where --lr-generator is 0"; one.Name == "lr" && !strings.Contains(one.Help, want) {
				t.Errorf("--lr: %q, want %q", one.Help, want)
			}
		}
	}
}
