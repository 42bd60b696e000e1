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
	algotest.Run(t, Method(), schemas,
		algotest.Case{Name: "ebm", Config: &ebm},
		algotest.Case{Name: "gaussian", Config: &gaussian})
}
