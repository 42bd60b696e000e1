package cd

import (
	"bytes"
	"math"
	"testing"

	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm/grbmtest"
)

// With virtual shards there is no distance between worlds: the same bytes of
// every variable, chains included, on 1, 2, 4 and 8 ranks.
func TestDeterministicWorlds(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rig(cfg)
			r.DType = graph.F32
			want, err := r.Virtual(t.Context(), batch, 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, world := range []int{2, 4, 8} {
				got, err := r.Virtual(t.Context(), batch, world, 3)
				if err != nil {
					t.Fatal(err)
				}
				for name, w := range want {
					if !bytes.Equal(got[name], w) {
						t.Errorf("%d ranks: %s is not that of one rank", world, name)
					}
				}
			}
		})
	}
}

// Some thousand steps on the checkerboard, in float32 on the cpu, raise the exact
// log-likelihood of points that training does not see.
func TestLearnsTheBoard(t *testing.T) {
	for name, persistent := range map[string]bool{"CD-1": false, "PCD-1": true} {
		t.Run(name, func(t *testing.T) {
			cfg := *board(persistent)
			cfg.Machine.W = 2
			backend, err := cpu.New(cpu.Config{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := backend.Close(); err != nil {
					t.Error(err)
				}
			}()
			m := Model{cfg.Machine.Machine(), cfg}
			r := grbmtest.Rig{Backend: backend, DType: graph.F32, Batch: 100, Build: m.build, Feeder: m.Feeder,
				Data: func(step int) []float64 { return grbmtest.Board(step, 100) }}
			sets, err := r.Start(1)
			if err != nil {
				t.Fatal(err)
			}
			const n = 1000
			test := grbmtest.Board(1<<30, n)
			judge := func() float64 {
				ll, err := grbmtest.LogLikelihood(t.Context(), backend, sets[0], m, n, test)
				if err != nil {
					t.Fatal(err)
				}
				return ll
			}
			before := judge()
			if _, err := r.Run(t.Context(), sets, 0, 4000); err != nil {
				t.Fatal(err)
			}
			after := judge()
			// The best that units without couplings can have is that of two Gaussians of
			// variance 1/12.
			if independent := -math.Log(2 * math.Pi * math.E / 12); !(after > independent+0.02) {
				t.Errorf("the log-likelihood goes from %v to %v, and %v is had without couplings", before, after, independent)
			}
		})
	}
}
