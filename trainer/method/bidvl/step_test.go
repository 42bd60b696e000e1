package bidvl

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nets"
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

// One step and then another with the papers' networks made small, in F32: 1, 2
// and 4 ranks agree to rounding, and the replicas of a run bit for bit.
func TestRanksAgree(t *testing.T) {
	// With ε = 1e-8 a weight whose gradient is rounding alone takes a whole step.
	const eps = 1e-3
	half := Defaults()
	net := nets.Conv{Size: 16, Channels: 3, Width: 4, Latent: 5}
	half.Net.Size, half.Net.Latent = net.Size, net.Latent
	joint := half
	joint.Undecoupled = true
	res := CIFAR10ResNet().Config
	res.Net.Width, res.Net.Latent = 1, 5
	res.Generator.Eps = eps
	for _, tt := range []struct {
		name string
		cfg  Config
		net  nets.Networks
		tol  float64
	}{
		{"conv, half size, width 4", half, net, 1e-5},
		{"joint conv, half size, width 4", joint, net, 1e-5},
		{"resnet32, width 1", res, built(t, res), 1e-5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Upper.Eps, tt.cfg.Lower.Eps = eps, eps
			ranksAgree(t, rig{cfg: tt.cfg, net: tt.net, dtype: graph.F32}, tt.tol)
		})
	}
}

func ranksAgree(t *testing.T, r rig, tol float64) {
	images := r.pictures(4)
	var want state
	var wantReports []report
	for _, world := range []int{1, 2, 4} {
		reports, sets, err := r.train(world, 2, images)
		if err != nil {
			t.Fatal(err)
		}
		got := stateOf(t, sets[0])
		if world == 1 {
			want, wantReports = got, reports
		}
		for i := range reports {
			if err := ddptest.Near(reports[i].values, wantReports[i].values, tol/10); err != nil {
				t.Errorf("%d ranks, step %d, report %v: %v", world, i, reports[i].names, err)
			}
		}
		for name := range want {
			if err := ddptest.Near(got[name], want[name], tol); err != nil {
				t.Errorf("%d ranks, %s: %v", world, name, err)
			}
			for rank := 1; rank < world; rank++ {
				if err := ddptest.Near(numbers(t, sets[rank], name), got[name], 0); err != nil {
					t.Errorf("%d ranks, rank %d, %s: %v", world, rank, name, err)
				}
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
