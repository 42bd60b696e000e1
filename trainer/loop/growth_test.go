package loop_test

import (
	"runtime"
	"testing"

	"ebtrain/trainer/loop"
)

// TestStepsAllocateNothing counts what the loop, the loader and the engine
// allocate per step, epochs of 16 steps included. What is left is two names of
// optimisers, the copy that this test's observer keeps, and the order of an
// epoch now and then.
func TestStepsAllocateNothing(t *testing.T) {
	const from, to, most = 20, 180, 6
	var before, after runtime.MemStats
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: to + 1, Seed: 1}}
	j.doing = func(_ int, step int64, what string) {
		switch {
		case what == "load" && step == from:
			runtime.ReadMemStats(&before)
		case what == "load" && step == to:
			runtime.ReadMemStats(&after)
		}
	}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	perStep := float64(after.Mallocs-before.Mallocs) / (to - from)
	t.Logf("%.2f allocations, %.0f bytes per step", perStep, float64(after.TotalAlloc-before.TotalAlloc)/(to-from))
	if perStep > most {
		t.Errorf("%.2f allocations per step, want at most %d", perStep, most)
	}
}
