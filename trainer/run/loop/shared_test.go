package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/run/loop"
)

// runJob runs a job that must succeed.
func runJob(t *testing.T, world int, c loop.Config) *job {
	t.Helper()
	j := &job{world: world, config: c}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	return j
}

// sameRecords demands equal numbers, bit for bit.
func sameRecords(t *testing.T, got, want []loop.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d steps, want %d", len(got), len(want))
	}
	for i, r := range want {
		if fmt.Sprint(got[i].Step, got[i].Values) != fmt.Sprint(r.Step, r.Values) {
			t.Errorf("step %d: %v, want %v", i, got[i].Values, r.Values)
		}
	}
}

// sameButNorms demands equal numbers, but for the rounding of gradients' norms: ranks that
// keep parts sum the squares of theirs.
func sameButNorms(t *testing.T, got, want []loop.Record) {
	t.Helper()
	rounded := slices.Clone(want)
	for i, r := range want {
		rounded[i].Values = slices.Clone(r.Values)
		for k, name := range r.Names {
			if v := r.Values[k]; strings.HasPrefix(name, "grad_") && i < len(got) && math.Abs(got[i].Values[k]-v) <= 1e-5*math.Abs(v) {
				rounded[i].Values[k] = got[i].Values[k]
			}
		}
	}
	sameRecords(t, got, rounded)
}

// sameCheckpoint demands equal files of tensors.
func sameCheckpoint(t *testing.T, what, got, want string, step int) {
	t.Helper()
	files := []string{"weights", "optimizer", "buffers"}
	if _, err := os.Stat(filepath.Join(want, fmt.Sprintf("step-%08d", step), "average.safetensors")); err == nil {
		files = append(files, "average")
	}
	for _, file := range files {
		name := filepath.Join(fmt.Sprintf("step-%08d", step), file+".safetensors")
		a, err := os.ReadFile(filepath.Join(got, name))
		b, err2 := os.ReadFile(filepath.Join(want, name))
		if errors.Join(err, err2) != nil {
			t.Fatal(errors.Join(err, err2))
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s has other bytes", what, name)
		}
	}
}

// Ranks that keep parts of the moments compute what ranks do that have all, and write
// the same checkpoints; with virtual shards the norms of gradients are the same, too.
func TestShardOptimizer(t *testing.T) {
	for _, world := range []int{1, 2, 3, 4} {
		for _, shards := range []int{0, 4} {
			if shards%world != 0 || testing.Short() && world != 2 {
				continue
			}
			t.Run(fmt.Sprintf("%d ranks, %d shards", world, shards), func(t *testing.T) {
				c := loop.Config{Batch: 12, Steps: 3, Seed: 1, CkptDir: t.TempDir(), Shards: shards, CheckEvery: 1}
				want := runJob(t, world, c)
				all := c.CkptDir
				c.ShardOptimizer, c.CkptDir = true, t.TempDir()
				got := runJob(t, world, c)
				if shards > 0 {
					sameRecords(t, got.seen.records, want.seen.records)
				} else {
					sameButNorms(t, got.seen.records, want.seen.records)
				}
				sameCheckpoint(t, "checkpoint", c.CkptDir, all, 3)
				whole, own := momentBytes(t, want), momentBytes(t, got)
				if own > whole/world+whole/20 || own == whole && world > 1 {
					t.Errorf("each rank keeps %d bytes of moments of %d", own, whole)
				}
			})
		}
	}
}

// Whatever reads weights between steps finds those that the last step has made, although
// ranks have parts of them then: comparisons, grids and checkpoints, each after steps after
// which the others do nothing.
func TestWeightsAreWholeBetweenSteps(t *testing.T) {
	for _, c := range []loop.Config{
		{Steps: 5, CkptEvery: 2},
		{Steps: 5, CkptEvery: 3, CheckEvery: 1, SampleEvery: 2, SampleCount: 4},
		{Steps: 3, SampleEvery: 2, SampleCount: 4},
	} {
		c.Batch, c.Seed, c.CkptDir = 12, 1, t.TempDir()
		want := runJob(t, 2, c)
		all := c.CkptDir
		c.ShardOptimizer, c.CkptDir = true, t.TempDir()
		got := runJob(t, 2, c)
		sameButNorms(t, got.seen.records, want.seen.records)
		if len(got.seen.saved) == 0 || !slices.Equal(got.seen.saved, want.seen.saved) {
			t.Errorf("checkpoints after steps %v, want %v", got.seen.saved, want.seen.saved)
		}
		for _, step := range want.seen.saved {
			sameCheckpoint(t, "checkpoint", c.CkptDir, all, int(step))
		}
		if !slices.EqualFunc(got.seen.grids, want.seen.grids, bytes.Equal) {
			t.Errorf("%+v: grids have other pictures", c)
		}
	}
}

// momentBytes is how many bytes of moments a rank keeps.
func momentBytes(t *testing.T, j *job) (n int) {
	t.Helper()
	for _, name := range j.vars[0].Names() {
		if typ, _ := j.vars[0].Type(name); strings.HasPrefix(name, "adam.") {
			n += typ.Bytes()
		}
	}
	if n == 0 {
		t.Fatal("there are no moments")
	}
	return n
}

// A run goes on from a checkpoint on any number of ranks, whoever kept what before.
func TestShardedResume(t *testing.T) {
	c := loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptDir: t.TempDir(), Shards: 4}
	want, whole := runJob(t, 1, c).seen.records, c.CkptDir
	for _, tt := range []struct {
		world   [2]int
		sharded [2]bool
	}{
		{[2]int{2, 2}, [2]bool{true, false}},
		{[2]int{2, 2}, [2]bool{false, true}},
		{[2]int{4, 2}, [2]bool{true, true}},
		{[2]int{2, 4}, [2]bool{true, true}},
		{[2]int{2, 1}, [2]bool{true, true}},
	} {
		if testing.Short() && tt.world != [2]int{2, 2} {
			continue
		}
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			c.CkptDir = t.TempDir()
			var got []loop.Record
			for half := range 2 {
				c.Steps, c.Resume, c.ShardOptimizer = int64(2+2*half), half == 1, tt.sharded[half]
				got = append(got, runJob(t, tt.world[half], c).seen.records...)
			}
			sameRecords(t, got, want)
			sameCheckpoint(t, "checkpoint", c.CkptDir, whole, 4)
		})
	}
}

// A rank without the job's last checkpoint is sent it, and cuts its own part.
func TestShardedCheckpointIsSent(t *testing.T) {
	c := loop.Config{Batch: 4, Steps: 2, Seed: 1, CkptDir: t.TempDir(), ShardOptimizer: true}
	first := runJob(t, 2, c)
	c.Steps, c.Resume = 4, true
	j := &job{world: 2, config: c, dirs: []string{c.CkptDir, t.TempDir()}}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	c.Resume, c.CkptDir, c.ShardOptimizer = false, t.TempDir(), false
	sameButNorms(t, append(first.seen.records, j.seen.records...), runJob(t, 2, c).seen.records)
}
