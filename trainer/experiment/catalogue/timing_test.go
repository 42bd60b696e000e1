package catalogue

import (
	"testing"

	"ebtrain/trainer/method/bism"
	"ebtrain/trainer/settings"
	"ebtrain/trainer/stepbench/flops"
)

// TestProducts counts the products of (100, 560) and (560, 400) in a step of
// BiDSM on Frey faces, which About of time tells: three in a step of the lower
// level, six in an unrolled one, which is gone through twice.
func TestProducts(t *testing.T) {
	const product = 2 * 100 * 560 * 400
	m, err := settings.MethodOf("bism-frey")
	if err != nil {
		t.Fatal(err)
	}
	preset, err := m.Preset("bism-frey")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int64{0: 20, 1: 30, 5: 54, 10: 84} {
		c := preset.Config.Clone().(*bism.Config)
		c.LowerSteps, c.Unroll = 5, n
		g, _, err := c.Model().Step(1, 100)
		if err != nil {
			t.Fatal(err)
		}
		if got := flops.Of(g).Total(); got != want*product {
			t.Errorf("N = %d: %.1f products, want %d", n, float64(got)/product, want)
		}
	}
}
