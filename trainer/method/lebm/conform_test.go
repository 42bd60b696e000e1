package lebm

import (
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo/algotest"
)

func TestConforms(t *testing.T) {
	small := data.Schema{C: 3, H: 32, W: 32}
	schemas := map[string]data.Schema{"lebm-svhn": small, "lebm-cifar10": small, "lebm-celeba32": small, "lebm-celeba64": {C: 3, H: 64, W: 64}}
	ebm, gaussian := tiny(same), tiny(func(c *Config) { c.Prior = Gaussian })
	schemas["lebm-snli"], schemas["lebm-ptb"], schemas["lebm-yahoo"] = algotest.Prose(), algotest.Prose(), algotest.Prose()
	words, plain := tinyText(t, same), tinyText(t, func(c *Config) { c.Prior = Gaussian })
	staged := tinyText(t, func(c *Config) { c.Text.Staged = true })
	algotest.Run(t, Method(), schemas,
		algotest.Case{Name: "sentences", Config: &words},
		algotest.Case{Name: "sentences, gaussian", Config: &plain},
		algotest.Case{Name: "sentences, staged", Config: &staged},
		algotest.Case{Name: "ebm", Config: &ebm},
		algotest.Case{Name: "gaussian", Config: &gaussian})
}
