package bidvl

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
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
