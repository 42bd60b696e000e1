package loop_test

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// group is a group of the checkpoint of a step, by name.
func group(t *testing.T, dir string, step int64, of string) map[string][]float32 {
	t.Helper()
	_, groups, err := ckpt.Read(filepath.Join(dir, ckpt.Name(step)))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]float32{}
	for _, n := range groups[of] {
		values[n.Name] = n.Tensor.F32()
	}
	return values
}

// Checkpoints hold the averages of the weights that all steps so far have left, by the names
// of the weights, and of each weight; the losses are those without.
func TestAverages(t *testing.T) {
	const steps, decay = 8, 0.7
	for name, of := range map[string]func(c loop.Config) *job{
		"pictures": func(c loop.Config) *job { return &job{world: 1, config: c} },
		"sentences": func(c loop.Config) *job { // of some lengths, each with a program of its own
			j, _ := reading(t, 1, c)
			return j
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := loop.Config{Batch: 8, Steps: steps, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 1}
			run := func() []loop.Record {
				j := of(c)
				if _, errs := j.run(t); errs[0] != nil {
					t.Fatal(errs[0])
				}
				return j.seen.records
			}
			without := run()
			if got := group(t, c.CkptDir, steps, ckpt.Averages); len(got) != 0 {
				t.Errorf("without averages the checkpoint has %d", len(got))
			}
			c.Average, c.CkptDir = decay, t.TempDir()
			sameRecords(t, run(), without)
			checkAverages(t, c.CkptDir, steps, decay)
		})
	}
}

// checkAverages holds those of each checkpoint to the sum that defines them.
func checkAverages(t *testing.T, dir string, steps int64, decay float64) {
	t.Helper()
	sum, weight := map[string][]float64{}, 0.0
	for step := int64(1); step <= steps; step++ {
		weights, averages := group(t, dir, step, ckpt.Weights), group(t, dir, step, ckpt.Averages)
		if len(averages) != len(weights) || len(weights) == 0 {
			t.Fatalf("step %d: %d averages of %d weights", step, len(averages), len(weights))
		}
		weight = decay*weight + 1
		for name, w := range weights {
			if sum[name] == nil {
				sum[name] = make([]float64, len(w))
			}
			for i, x := range w {
				sum[name][i] = decay*sum[name][i] + float64(x)
				if want := sum[name][i] / weight; !(math.Abs(float64(averages[name][i])-want) <= 1e-6*(1+math.Abs(want))) {
					t.Fatalf("step %d: average %d of %s is %v, want %v", step, i, name, averages[name][i], want)
				}
			}
		}
	}
}

// Averages are the same bits however the work is shared, and after a resume, by ranks that
// share it otherwise.
func TestAveragesOfAnyRanks(t *testing.T) {
	c := loop.Config{Batch: 12, Steps: 4, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 2, Shards: 4, Average: 0.5, CheckEvery: 1}
	runJob(t, 1, c)
	want := c.CkptDir
	for _, world := range []int{1, 2, 4} {
		for _, sharded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d ranks, sharded %v", world, sharded), func(t *testing.T) {
				c := c
				c.ShardOptimizer, c.CkptDir, c.Steps = sharded, t.TempDir(), 2
				runJob(t, world, c)
				sameCheckpoint(t, "checkpoint", c.CkptDir, want, 2)
				c.Resume, c.Steps, c.ShardOptimizer = true, 4, !sharded
				runJob(t, 4/world, c)
				sameCheckpoint(t, "resumed", c.CkptDir, want, 4)
			})
		}
	}
}

// Ranks that keep parts of the moments keep parts of averages, too.
func TestAveragesAreShared(t *testing.T) {
	kept := map[bool]int{}
	for _, sharded := range []bool{false, true} {
		j := runJob(t, 2, loop.Config{Batch: 12, Steps: 1, Seed: 1, Average: 0.5, ShardOptimizer: sharded})
		for _, name := range j.vars[0].Names() {
			if typ, _ := j.vars[0].Type(name); strings.HasSuffix(name, ".average") {
				kept[sharded] += typ.Bytes()
			}
		}
	}
	if all, own := kept[false], kept[true]; all == 0 || own > all/2+all/20 {
		t.Errorf("each of two ranks keeps %d bytes of averages of %d", own, all)
	}
}

// A checkpoint of no step holds the weights as averages.
func TestAveragesOfNoStep(t *testing.T) {
	c := loop.Config{Batch: 12, Seed: 1, CkptDir: t.TempDir(), Average: 0.5, ShardOptimizer: true}
	runJob(t, 2, c)
	weights, averages := group(t, c.CkptDir, 0, ckpt.Weights), group(t, c.CkptDir, 0, ckpt.Averages)
	if len(weights) == 0 || !reflect.DeepEqual(averages, weights) {
		t.Errorf("%d averages of %d weights, or others than these", len(averages), len(weights))
	}
}

// A checkpoint that lacks averages is refused.
func TestAveragesAreMissed(t *testing.T) {
	c := loop.Config{Batch: 4, Steps: 2, Seed: 1, CkptDir: t.TempDir(), Average: 0.5}
	runJob(t, 1, c)
	state, groups, err := ckpt.Read(filepath.Join(c.CkptDir, ckpt.Name(2)))
	if err != nil {
		t.Fatal(err)
	}
	delete(groups, ckpt.Averages)
	c.CkptDir = t.TempDir()
	if _, err := ckpt.Write(c.CkptDir, state, groups); err != nil {
		t.Fatal(err)
	}
	c.Resume, c.Steps = true, 3
	j := &job{world: 1, config: c}
	if _, errs := j.run(t); errs[0] == nil || !strings.Contains(errs[0].Error(), "has no tensor generator.conv1.weight.average") {
		t.Errorf("%v, want that the average of a weight is missing", errs[0])
	}
}

// Grids are drawn from the averages: they are those of a run whose weights these are.
func TestAveragesAreShown(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		c := loop.Config{Batch: 12, Steps: 3, Seed: 1, CkptDir: t.TempDir(), Average: 0.5, ShardOptimizer: sharded, SampleEvery: 1, SampleCount: 4}
		shown := runJob(t, 2, c).seen.grids
		state, groups, err := ckpt.Read(filepath.Join(c.CkptDir, ckpt.Name(3)))
		if err != nil {
			t.Fatal(err)
		}
		groups[ckpt.Weights] = groups[ckpt.Averages]
		c.Average, c.CkptDir, c.Resume = 0, t.TempDir(), true
		if _, err := ckpt.Write(c.CkptDir, state, groups); err != nil {
			t.Fatal(err)
		}
		want := runJob(t, 1, c).seen.grids // there is no step left, so it draws the last samples again
		if len(shown) != 3 || len(want) != 1 || !slices.Equal(shown[2], want[0]) {
			t.Errorf("sharded %v: %d grids, and the last is not that of a run with such weights (%d)", sharded, len(shown), len(want))
		}
		if slices.Equal(shown[1], shown[2]) {
			t.Errorf("sharded %v: the grid stays the same", sharded)
		}
	}
}
