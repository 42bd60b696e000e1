package loop_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/bidvl"
	"ebtrain/trainer/loop"
)

// idle is an observer that keeps nothing.
type idle struct{}

func (idle) Started(int64) error               { return nil }
func (idle) Sampled(int64, *exec.Tensor) error { return nil }
func (idle) Saving(int64) error                { return nil }
func (idle) Ended(int64) error                 { return nil }
func (idle) Stepped(loop.Record) error         { return nil }

// TestStepsAllocateNothing counts what all ranks allocate in the loop, the
// loader, the engine and the collectives, epochs of 8 steps and comparisons of
// the replicas included. The runtime may have some objects for itself (a thread
// that it starts has a dozen): one for two steps, on all ranks together.
func TestStepsAllocateNothing(t *testing.T) {
	for world := 1; world <= 2; world++ {
		t.Run(fmt.Sprintf("ranks=%d", world), func(t *testing.T) {
			const from, to = 20, 100
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects of its own
			var before, after runtime.MemStats
			j := job{world: world, config: loop.Config{Batch: 8, Steps: to + 1, Seed: 1, CheckEvery: 10}}
			j.load = func(c *loader.Config) { c.Prefetch, c.Flip = 2, true }
			j.alg = func(c *bidvl.Config) { c.Net.Width = 8 }
			j.parts = func(rank int, p *loop.Parts) {
				if rank == 0 {
					p.Observer = idle{}
				}
			}
			j.doing = func(rank int, step int64, what string) {
				switch {
				case rank != 0 || what != "load":
				case step == from:
					runtime.ReadMemStats(&before)
				case step == to:
					runtime.ReadMemStats(&after)
				}
			}
			if _, errs := j.run(t); errs[0] != nil {
				t.Fatal(errs[0])
			}
			n := int(after.Mallocs - before.Mallocs)
			t.Logf("%d objects, %d bytes in %d steps", n, after.TotalAlloc-before.TotalAlloc, to-from)
			if n > (to-from)/2 {
				t.Errorf("%d objects were allocated in %d steps, want at most %d", n, to-from, (to-from)/2)
			}
		})
	}
}
