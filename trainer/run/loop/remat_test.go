package loop_test

import (
	"errors"
	"slices"
	"testing"

	"ebtrain/trainer/run/loop"
)

// TestRematTrainsTheSame compares every number of a few steps on two ranks
// with those of a run that keeps everything.
func TestRematTrainsTheSame(t *testing.T) {
	run := func(remat bool) []loop.Record {
		j := job{world: 2, config: loop.Config{Batch: 16, Steps: 4, Seed: 1, Remat: remat}}
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		return j.seen.records
	}
	want, got := run(false), run(true)
	for i, r := range want {
		if len(got) != len(want) || !slices.Equal(got[i].Values, r.Values) {
			t.Fatalf("step %d: got %v, want %v", i, got, want)
		}
	}
}
