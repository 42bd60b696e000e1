package bidvl

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
)

// Two whole steps against plain loops and finite differences: all weights,
// moments, running statistics and spectral vectors, and the report, of every
// variant in both orders, on 1, 2 and 4 ranks.
func TestStepAgainstLoops(t *testing.T) {
	const steps = 2
	for _, variant := range variants() {
		for _, order := range Orders() {
			cfg := tinyConfig()
			cfg.Order = order
			variant.change(&cfg)
			r := tinyRig(cfg)
			images := r.pictures(8)
			_, start, err := r.train(1, 0, images)
			if err != nil {
				t.Fatal(err)
			}
			want := stateOf(t, start[0])
			var wantReports []map[string]float64
			for i := range steps {
				wantReports = append(wantReports, cfg.emulate(want, i, images))
			}
			for _, world := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s, %s, %d ranks", variant.name, order, world), func(t *testing.T) {
					reports, sets, err := r.train(world, steps, images)
					if err != nil {
						t.Fatal(err)
					}
					for i, report := range reports {
						if len(report.names) != len(report.values) {
							t.Fatalf("%d numbers in the report %v", len(report.values), report.names)
						}
						for _, name := range report.names {
							w, ok := wantReports[i][name]
							if !ok {
								t.Errorf("the loops have no %s", name)
							}
							if got := named(report, name); !(math.Abs(got-w) <= 1e-6*(1+math.Abs(w))) {
								t.Errorf("step %d, %s: got %v, want %v", i, name, got, w)
							}
						}
					}
					for rank, vars := range sets {
						if len(vars.Names()) != len(want) {
							t.Errorf("rank %d has %d variables, want %d", rank, len(vars.Names()), len(want))
						}
						for name, w := range want {
							if err := ddptest.Near(numbers(t, vars, name), w, 1e-6); err != nil {
								t.Errorf("rank %d, %s: %v", rank, name, err)
							}
						}
					}
				})
			}
		}
	}
}

// variant is a way to run BiDVL.
type variant struct {
	name   string
	change func(c *Config)
}

// variants are all switches, each alone and in the combinations that share
// code.
func variants() []variant {
	three := func(c *Config) {
		g := c.Lower
		g.Name, g.LR, g.WeightDecay = "generator", 0.03, 0.2
		c.Generator = &g
	}
	return []variant{
		{"offset", func(c *Config) {}},
		{"fresh latent", func(c *Config) { c.FreshLatent = true }},
		{"not offset", func(c *Config) { c.LatentTerm = NotOffset }},
		{"no latent term", func(c *Config) { c.LatentTerm = NoLatent }},
		{"hinge", func(c *Config) { c.UpperLoss = Hinge }},
		{"sigmoid ratio", func(c *Config) { c.Ratio = SigmoidRatio }},
		{"clamp ratio, hinge", func(c *Config) { c.Ratio, c.UpperLoss = ClampRatio, Hinge }},
		{"canonical", func(c *Config) { c.LowerLevel = Canonical }},
		{"canonical, not offset", func(c *Config) { c.LowerLevel, c.LatentTerm = Canonical, NotOffset }},
		{"undecoupled", func(c *Config) { c.Undecoupled = true }},
		{"undecoupled, fresh latent, no latent term", func(c *Config) { c.Undecoupled, c.FreshLatent, c.LatentTerm = true, true, NoLatent }},
		{"undecoupled, canonical", func(c *Config) { c.Undecoupled, c.LowerLevel = true, Canonical }},
		{"two lower steps", func(c *Config) { c.LowerSteps = 2 }},
		{"three lower steps, not offset, fresh latent, sigmoid ratio", func(c *Config) {
			c.LowerSteps, c.LatentTerm, c.FreshLatent, c.Ratio = 3, NotOffset, true, SigmoidRatio
		}},
		{"three optimisers", three},
		{"three optimisers, two lower steps, not offset", func(c *Config) {
			three(c)
			c.LowerSteps, c.LatentTerm = 2, NotOffset
		}},
	}
}
