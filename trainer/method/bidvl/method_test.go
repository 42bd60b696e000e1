package bidvl

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
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

// Betas and the decay of rates are one for all optimisers; weight decay is that of Q and G,
// and none of E.
func TestSharedSettings(t *testing.T) {
	given := map[string]string{"lr": "1e-5", "lr-energy": "2e-5", "beta1": "0.5", "beta2": "0.75", "lr-decay": "0.25", "weight-decay": "0.125"}
	for _, p := range Presets() {
		c, want := p.Config, p.Config
		if err := algotest.Given(&c, given); err != nil {
			t.Fatal(err)
		}
		shared := optim.Adam{Beta1: 0.5, Beta2: 0.75, Eps: 1e-8, Decay: 0.25}
		want.Upper, want.Lower = shared, shared
		want.Upper.Name, want.Upper.LR = "upper", 2e-5
		want.Lower.Name, want.Lower.LR, want.Lower.WeightDecay = "lower", 1e-5, 0.125
		if p.Config.Generator != nil {
			g := want.Lower
			g.Name, g.LR = "generator", 2e-4
			want.Generator = &g
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%s: got %+v, %+v, want %+v, %+v", p.Name, c, c.Generator, want, want.Generator)
		}
	}
}

// --latent-weight is a number of float32 from 0, or auto.
func TestLatentWeight(t *testing.T) {
	for text, want := range map[string]float64{"auto": DefaultLatentWeight, "0.5": 0.5, "1e-4": 1e-4} {
		c := CIFAR10().Config
		if err := algotest.Given(&c, map[string]string{"latent-weight": text}); err != nil || c.LatentWeight != want {
			t.Errorf("%s: got %v, %v", text, c.LatentWeight, err)
		}
	}
	for _, text := range []string{"-1", "NaN", "1e39", "much"} {
		c := CIFAR10().Config
		if err := algotest.Given(&c, map[string]string{"latent-weight": text}); err == nil || !strings.Contains(err.Error(), "finite in float32, or auto for 1/latent, got "+text) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A weight of a term that there is not is refused where it was changed from what the
// preset has, or from what a run has that goes on.
func TestWeightsOfNoUse(t *testing.T) {
	none, canonical := map[string]string{"latent-term": "none"}, map[string]string{"lower-level": "canonical"}
	for _, tt := range []struct {
		preset     Preset
		term       map[string]string
		flag, text string
		want       string
	}{
		{CIFAR10(), none, "latent-weight", "0.3", "--latent-weight 0.3 is of the latent term, which --latent-term none leaves out"},
		{CIFAR10ResNet(), none, "latent-weight", "auto", "--latent-weight auto is of the latent term"},
		{CIFAR10(), none, "latent-weight", "auto", ""},
		{CIFAR10ResNet(), none, "latent-weight", "1e-4", ""},
		{CIFAR10(), none, "latent-weight", "0", ""},
		{CIFAR10(), none, "vae-weight", "0.3", ""},
		{CIFAR10(), canonical, "vae-weight", "0.3", "--vae-weight 0.3 is of reconstruction and prior terms, which --lower-level canonical has not"},
		{CIFAR10(), canonical, "vae-weight", "0", ""},
		{CIFAR10(), canonical, "latent-weight", "0.3", ""},
	} {
		c := tt.preset.Config
		given := map[string]string{tt.flag: tt.text}
		maps.Copy(given, tt.term)
		if err := algotest.Given(&c, given); (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s %v: got %v, want %q", tt.preset.Name, given, err, tt.want)
		}
	}
	c := CIFAR10().Config
	c.LatentTerm, c.LatentWeight = NoLatent, 0.3 // of a run that was begun before
	if err := algotest.Given(&c, map[string]string{"latent-weight": "0.3"}); err != nil {
		t.Error(err)
	}
}
