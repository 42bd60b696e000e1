package bidvl

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/nets"
)

// Two whole steps against plain loops and finite differences: all weights,
// moments, running statistics and spectral vectors, and the report, in every
// order, with each latent, on 1, 2 and 4 ranks.
func TestStepAgainstLoops(t *testing.T) {
	const steps = 2
	for _, order := range []Order{UpperFirst, LowerFirst} {
		for _, fresh := range []bool{false, true} {
			cfg := tinyConfig()
			cfg.Order, cfg.FreshLatent = order, fresh
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
				t.Run(fmt.Sprintf("%s, fresh %v, %d ranks", order, fresh, world), func(t *testing.T) {
					reports, sets, err := r.train(world, steps, images)
					if err != nil {
						t.Fatal(err)
					}
					for i, report := range reports {
						for name, w := range wantReports[i] {
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

// One step and then another with the paper's networks at width 4, for images
// of half the size, in F32: 1, 2 and 4 ranks agree to rounding, and the replicas
// of a run bit for bit.
func TestRanksAgree(t *testing.T) {
	cfg := Defaults()
	cfg.Net = nets.Conv{Size: 16, Channels: 3, Width: 4, Latent: 5}
	cfg.Upper.Eps, cfg.Lower.Eps = 1e-3, 1e-3 // with 1e-8 a weight whose gradient is rounding alone takes a whole step
	r := rig{cfg: cfg, net: cfg.Net, dtype: graph.F32}
	images := r.pictures(4)
	var want state
	var wantReports [][]float64
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
			if err := ddptest.Near(reports[i], wantReports[i], 1e-6); err != nil {
				t.Errorf("%d ranks, step %d, report %v: %v", world, i, Defaults().Report(), err)
			}
		}
		for name := range want {
			if err := ddptest.Near(got[name], want[name], 1e-5); err != nil {
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
