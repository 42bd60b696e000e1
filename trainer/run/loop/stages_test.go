package loop_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/run/loop"
)

// inferring is a small prior of sentences, whose latents are inferred before each step
// or within it.
func inferring(t *testing.T, staged string) algo.Model {
	t.Helper()
	c := preset(t, "lebm-yahoo")
	if err := algotest.Given(c, map[string]string{"embed": "4", "hidden": "6", "latent": "3", "nef": "4", "prior-steps": "2", "posterior-steps": "3", "posterior-step-size": "0.4", "staged": staged}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Fit(prose{}.Schema()), c.Validate()); err != nil {
		t.Fatal(err)
	}
	return c.Model()
}

// losses runs a model of sentences and gives its reports.
func losses(t *testing.T, m algo.Model, world int, config loop.Config) []float64 {
	t.Helper()
	j := job{world: world, config: config, data: func(int, data.Source) data.Source { return prose{} }}
	j.parts = func(_ int, p *loop.Parts) { p.Model = m }
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	return values(j.seen.records)
}

// What runs before a step leaves what it would have computed itself, on one rank and on
// two, at every length of batches.
func TestStages(t *testing.T) {
	config := loop.Config{Batch: 8, Steps: 8, Seed: 3, CheckEvery: 3}
	want := losses(t, inferring(t, "false"), 1, config)
	for world := 1; world <= 2; world++ {
		got := losses(t, inferring(t, "true"), world, config)
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%d numbers, want %d", len(got), len(want))
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 2e-4*(1+math.Abs(want[i]))) {
				t.Errorf("%d ranks: number %d is %v, within the step %v", world, i, got[i], want[i])
			}
		}
	}
}

// A run with stages that is interrupted goes on with the bits of the one that was not,
// and virtual shards have the bits of any number of ranks.
func TestStagesHaveTheSameBits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: bits of runs with stages are not compared; other tests compare those of runs without, and run stages")
	}
	m := inferring(t, "true")
	var want []float64
	for _, world := range []int{1, 2, 4} {
		whole := losses(t, m, world, loop.Config{Batch: 8, Steps: 6, Seed: 3, Shards: 4})
		dir := t.TempDir()
		got := losses(t, m, world, loop.Config{Batch: 8, Steps: 2, Seed: 3, Shards: 4, CkptDir: dir})
		got = append(got, losses(t, m, world, loop.Config{Batch: 8, Steps: 6, Seed: 3, Shards: 4, CkptDir: dir, Resume: true})...)
		if !slices.Equal(got, whole) {
			t.Errorf("%d ranks: a resumed run has other losses", world)
		}
		if want == nil {
			want = whole
		}
		if !slices.Equal(whole, want) {
			t.Errorf("%d ranks have other bits than one", world)
		}
	}
}

// What runs before a step reads weights that are as new as the step's, also where ranks
// keep parts of the newest between steps.
func TestStagesOfSharedOptimizer(t *testing.T) {
	m := inferring(t, "true")
	records := func(sharded bool) []loop.Record {
		t.Helper()
		j := job{world: 2, config: loop.Config{Batch: 8, Steps: 5, Seed: 3, ShardOptimizer: sharded}, data: func(int, data.Source) data.Source { return prose{} }}
		j.parts = func(_ int, p *loop.Parts) { p.Model = m }
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		return j.seen.records
	}
	sameButNorms(t, records(true), records(false))
}

func TestStagesAllocateNothing(t *testing.T) {
	j := job{world: 1, data: func(int, data.Source) data.Source { return prose{} }}
	j.allocatesNothing(t, inferring(t, "true"))
}
