package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest/queued"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/loop"
)

// deep makes the programs of all ranks queue steps. They then reduce over a group
// of their own, as a device's do.
func (j *job) deep(t *testing.T, depth int) {
	t.Helper()
	group := make([]collective.Comm, j.world)
	if j.world > 1 {
		local, err := host.NewLocal(t.Context(), j.world)
		if err != nil {
			t.Fatal(err)
		}
		for r, c := range local {
			group[r] = c
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	j.reduced = group
	parts := j.parts
	j.parts = func(rank int, p *loop.Parts) {
		p.Backend = queued.Backend{Backend: p.Backend, Runs: depth, Reduced: group[rank]}
		if parts != nil {
			parts(rank, p)
		}
	}
}

// ending is what a run leaves behind: how it ended, what was shown of it, and its
// checkpoints, file by file.
type ending struct {
	outcomes []loop.Outcome
	errs     []string
	steps    []string
	saved    []int64
	samples  int
	files    map[string][]byte
}

func (j *job) ending(t *testing.T) ending {
	t.Helper()
	var e ending
	var errs []error
	e.outcomes, errs = j.run(t)
	for _, err := range errs {
		e.errs = append(e.errs, strings.ReplaceAll(fmt.Sprint(err), j.config.CkptDir, "DIR"))
	}
	for _, r := range j.seen.records {
		if r.StepTime <= 0 || r.DataTime < 0 || r.DataTime > r.StepTime || r.CommTime < 0 || j.world > 1 && r.CommTime == 0 {
			t.Errorf("step %d took %v, of it %v for data and %v for collectives", r.Step, r.StepTime, r.DataTime, r.CommTime)
		}
		e.steps = append(e.steps, fmt.Sprint(r.Step, r.Epoch, r.Samples, r.Names, r.Values))
	}
	e.saved, e.samples = j.seen.saved, j.seen.samples
	e.files = files(t, j.config.CkptDir)
	return e
}

// files are the files below dir.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (e ending) differs(from ending) error {
	var errs []error
	if !slices.Equal(e.outcomes, from.outcomes) || !slices.Equal(e.errs, from.errs) {
		errs = append(errs, fmt.Errorf("it ended %v %q, want %v %q", e.outcomes, e.errs, from.outcomes, from.errs))
	}
	if !slices.Equal(e.steps, from.steps) {
		errs = append(errs, fmt.Errorf("the steps are\n%s\nwant\n%s", strings.Join(e.steps, "\n"), strings.Join(from.steps, "\n")))
	}
	if !slices.Equal(e.saved, from.saved) || e.samples != from.samples {
		errs = append(errs, fmt.Errorf("%v were saved, and %d grids, want %v and %d", e.saved, e.samples, from.saved, from.samples))
	}
	for name, want := range from.files {
		if got, ok := e.files[name]; !ok || !bytes.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%s differs", name))
		}
	}
	if len(e.files) != len(from.files) {
		errs = append(errs, fmt.Errorf("%d files, want %d", len(e.files), len(from.files)))
	}
	return errors.Join(errs...)
}

// scene is a run that must not depend on the depth. make gives it anew, as its
// channels are used up.
type scene struct {
	name string
	make func(t *testing.T, world int) job
	want func(e ending) bool // that the run is what the scene is for
}

var scenes = []scene{
	{"all steps", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: 4, Steps: 7, Seed: 1}}
	}, func(e ending) bool { return len(e.steps) == 7 && len(e.files) > 0 }},
	{"one step", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, SampleCount: 2}}
	}, func(e ending) bool { return len(e.steps) == 1 && e.samples == 1 }},
	{"all that is due now and then", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: 4, Steps: 9, Seed: 1, CkptEvery: 4, SampleEvery: 3, SampleCount: 2, CheckEvery: 2}}
	}, func(e ending) bool { return len(e.saved) == 3 && e.samples == 3 }},
	{"the same of ranks that share an optimiser", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: 4, Steps: 9, Seed: 1, CkptEvery: 4, SampleEvery: 3, SampleCount: 2, CheckEvery: 2, ShardOptimizer: true}}
	}, func(e ending) bool { return len(e.saved) == 3 && e.samples == 3 }},
	{"a rank stops", func(_ *testing.T, world int) job {
		stop := make(chan struct{})
		return job{world: world, config: loop.Config{Batch: 4, Steps: 1000, Seed: 1},
			parts: func(rank int, p *loop.Parts) {
				if rank == world-1 {
					p.Stop = stop
				}
			},
			doing: func(rank int, step int64, what string) {
				if rank == world-1 && step == 3 && what == "load" {
					close(stop)
				}
			}}
	}, func(e ending) bool { return e.outcomes[0] == loop.Stopped && len(e.steps) == 4 }},
	{"stopped during the last step", func(_ *testing.T, world int) job {
		stop := make(chan struct{})
		close(stop)
		return job{world: world, config: loop.Config{Batch: 4, Steps: 1, Seed: 1}, parts: func(_ int, p *loop.Parts) { p.Stop = stop }}
	}, func(e ending) bool { return e.outcomes[0] == loop.Finished }},
	{"bad data", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: damagedBlock, Steps: 6, Seed: 1, CkptEvery: 100}, load: inOrder,
			data: func(rank int, s data.Source) data.Source {
				if rank == world-1 {
					return damaged{s, []int{3}}
				}
				return damaged{s, nil}
			}}
	}, func(e ending) bool { return len(e.steps) == 3 && strings.Contains(e.errs[0], "checksum differs") }},
	{"divergence", func(_ *testing.T, world int) job {
		return job{world: world, config: loop.Config{Batch: 4, Steps: 50, Seed: 1}, alg: func(c *bidvl.Config) { c.Lower.LR = 1e30 }}
	}, func(e ending) bool { return strings.Contains(e.errs[0], loop.ErrDiverged.Error()) && len(e.files) == 0 }},
}

// TestDepth queues two or three steps: records, checkpoints, grids, errors and the
// step after which ranks stop are those of a loop that waits for each.
func TestDepth(t *testing.T) {
	for _, s := range scenes {
		for world := fewest(); world <= 2; world++ {
			t.Run(fmt.Sprintf("%s/%d ranks", s.name, world), func(t *testing.T) {
				run := func(depth int) ending {
					j := s.make(t, world)
					j.config.CkptDir = t.TempDir()
					if depth > 0 {
						j.deep(t, depth)
					}
					return j.ending(t)
				}
				want := run(0)
				if !s.want(want) {
					t.Fatalf("the scene shows something else: %+v %q", want.outcomes, want.errs)
				}
				deepest := 4 - world
				if testing.Short() {
					deepest = 2
				}
				for depth := 2; depth <= deepest; depth++ {
					if err := run(depth).differs(want); err != nil {
						t.Errorf("depth %d: %v", depth, err)
					}
				}
			})
		}
	}
}

// fewest is the least number of ranks that the depth is tried with: by -short no world of one.
func fewest() int {
	if testing.Short() {
		return 2
	}
	return 1
}

// TestDepthIsUsed looks at when steps are launched and reported: with a depth of 2
// the report of a step comes when the next one has been launched, but for those
// after which something is due.
func TestDepthIsUsed(t *testing.T) {
	after3 := []string{"launch 0", "launch 1", "report 0", "launch 2", "report 1", "report 2", "launch 3", "launch 4", "report 3", "report 4"}
	for _, tt := range []struct {
		due    string
		config loop.Config
		want   []string
	}{
		{"comparisons", loop.Config{CheckEvery: 3}, after3},
		{"checkpoints", loop.Config{CkptEvery: 3, CkptDir: t.TempDir()}, after3},
		{"grids", loop.Config{SampleEvery: 3, SampleCount: 2}, after3},
		{"a trace of step 2", loop.Config{Profile: loop.Profile{File: filepath.Join(t.TempDir(), "trace.json"), Step: 2}},
			[]string{"launch 0", "launch 1", "report 0", "report 1", "launch 2", "report 2", "launch 3", "launch 4", "report 3", "report 4"}},
	} {
		var seen []string
		tt.config.Batch, tt.config.Steps, tt.config.Seed = 4, 5, 1
		j := job{world: 1, config: tt.config,
			doing: func(_ int, step int64, what string) {
				if what == "step" {
					seen = append(seen, fmt.Sprintf("launch %d", step))
				}
			},
			parts: func(_ int, p *loop.Parts) { p.Observer = &telling{&seen} }}
		j.deep(t, 2)
		if _, errs := j.run(t); errs[0] != nil {
			t.Fatal(errs[0])
		}
		if !slices.Equal(seen, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.due, seen, tt.want)
		}
	}
}

// telling is an observer that notes which steps it is shown.
type telling struct{ seen *[]string }

func (o *telling) Stepped(r loop.Record) error {
	*o.seen = append(*o.seen, fmt.Sprintf("report %d", r.Step))
	return nil
}
func (o *telling) Started(int64) error               { return nil }
func (o *telling) Sampled(int64, *exec.Tensor) error { return nil }
func (o *telling) Saving(int64) error                { return nil }
func (o *telling) Saved(int64) error                 { return nil }
func (o *telling) Ended(int64) error                 { return nil }

// TestDepthResumes goes on with a queue from what was saved without one, and the
// other way round.
func TestDepthResumes(t *testing.T) {
	for world := fewest(); world <= 2; world++ {
		train := func(c loop.Config, depth int) ending {
			j := job{world: world, config: c}
			j.deep(t, depth)
			return j.ending(t)
		}
		whole := loop.Config{Batch: 4, Steps: 5, Seed: 1, CkptDir: t.TempDir()}
		want := train(whole, 1)
		for _, depths := range [][2]int{{1, 2}, {2, 1}, {2, 2}} {
			half := whole
			half.CkptDir, half.Steps = t.TempDir(), 2
			first := train(half, depths[0])
			half.Steps, half.Resume = 5, true
			second := train(half, depths[1])
			if got := append(first.steps, second.steps...); !slices.Equal(got, want.steps) {
				t.Errorf("%d ranks, depths %v: got\n%s\nwant\n%s", world, depths, strings.Join(got, "\n"), strings.Join(want.steps, "\n"))
			}
			for name, file := range want.files {
				if !bytes.Equal(second.files[name], file) {
					t.Errorf("%d ranks, depths %v: %s differs", world, depths, name)
				}
			}
		}
	}
}

// TestDepthProfile traces a step that is alone in the queue.
func TestDepthProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 5, Seed: 1, Profile: loop.Profile{File: file, Step: 2}}}
	j.deep(t, 2)
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	checkTraceFile(t, file, 2)
}

// TestDepthObserverFails ends a run while a step is queued, and what it was doing.
func TestDepthObserverFails(t *testing.T) {
	for _, at := range []string{"stepped", "sampled", "saving"} {
		j := job{world: 2, config: loop.Config{Batch: 4, Steps: 6, Seed: 1, SampleCount: 2, SampleEvery: 2, CkptEvery: 2, CkptDir: t.TempDir()}}
		j.parts = func(rank int, p *loop.Parts) {
			if rank == 0 {
				p.Observer = &failing{at: at}
			}
		}
		j.deep(t, 2)
		_, errs := j.run(t)
		if !errors.Is(errs[0], errDisk) || !errors.Is(errs[1], collective.ErrAborted) {
			t.Errorf("%s: rank 0 ended with %v, rank 1 with %v, want its own failure and the end of the group", at, errs[0], errs[1])
		}
	}
}

// TestDepthReplicasAreCompared changes a weight of rank 1 while nothing is queued.
func TestDepthReplicasAreCompared(t *testing.T) {
	const name = "generator.conv1.weight"
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 10, Seed: 1, CheckEvery: 3}}
	j.doing = func(rank int, step int64, what string) {
		if rank != 1 || step != 3 || what != "compare replicas" {
			return
		}
		w, err := j.vars[1].Get(name)
		if err != nil {
			t.Error(err)
			return
		}
		w.Bytes()[5] ^= 1
		if err := j.vars[1].Set(name, w); err != nil {
			t.Error(err)
		}
	}
	j.deep(t, 2)
	_, errs := j.run(t)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), name) || len(j.seen.records) != 3 {
			t.Errorf("rank %d: %v after %d steps, want an error that names %s after 3", r, err, len(j.seen.records), name)
		}
	}
}
