package bidvl

import (
	"strings"
	"testing"
)

// A pass over the same latents with the same weights is in the graph once.
func TestGeneratorIsShared(t *testing.T) {
	c := CIFAR10().Config
	c.Net.Width = 8
	for _, world := range []int{1, 2} {
		count := func(fresh bool) int {
			c.FreshLatent = fresh
			g, _, err := c.Step(world, 4)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := g.Dump(&text); err != nil {
				t.Fatal(err)
			}
			return strings.Count(text.String(), "= tanh")
		}
		if got := count(false); got != 2 { // G(ĥ) and G(h)
			t.Errorf("world %d, same latents: %d passes through the generator, want 2", world, got)
		}
		if got := count(true); got != 3 {
			t.Errorf("world %d, fresh latents: %d passes through the generator, want 3", world, got)
		}
	}
}
