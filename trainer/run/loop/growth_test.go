package loop_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/settings"
)

// idle is an observer that keeps nothing.
type idle struct{}

func (idle) Started(int64) error               { return nil }
func (idle) Sampled(int64, *exec.Tensor) error { return nil }
func (idle) Saving(int64) error                { return nil }
func (idle) Saved(int64) error                 { return nil }
func (idle) Ended(int64) error                 { return nil }
func (idle) Stepped(loop.Record) error         { return nil }

// TestStepsAllocateNothing counts what all ranks allocate in the loop, the
// loader, the engine and the collectives, epochs of 8 steps and comparisons of
// the replicas included, for every method. Under the race detector two methods on two
// ranks do it for a while, and nothing is counted. The runtime may have some objects for
// itself (a thread that it starts has a dozen, and each processor keeps some for
// goroutines that wait): one for two steps, on all ranks together, and the least of
// four counts is taken.
func TestStepsAllocateNothing(t *testing.T) {
	for world := 1; world <= 2; world++ {
		if raceEnabled && world == 1 {
			continue
		}
		t.Run(fmt.Sprintf("bidvl, ranks=%d", world), func(t *testing.T) {
			j := job{world: world, alg: func(c *bidvl.Config) { c.Net.Width = 8 }}
			j.allocatesNothing(t, nil)
		})
		tiny := map[string]string{"ngf": "2", "nef": "8", "latent": "4", "prior-steps": "4", "posterior-steps": "3"}
		for _, tt := range []struct {
			preset, data string
			flags        map[string]string
		}{
			{"bism-board-dsm", dataset.Checkerboard, nil},
			{"bism-board-ssm", dataset.Checkerboard, nil},
			{"sm-board-dsm", dataset.Checkerboard, nil},
			{"pcd-board", dataset.Checkerboard, nil},
			{"vnce-board", dataset.Checkerboard, nil},
			{"lebm-svhn", dataset.Synth, tiny},
			{"vae-cifar10", dataset.Synth, map[string]string{"width": "4"}},
			{"sngan-cifar10", dataset.Synth, map[string]string{"width": "1", "n-dis": "2"}},
		} {
			if raceEnabled && tt.preset != "pcd-board" { // whose chains go on from step to step
				continue
			}
			t.Run(fmt.Sprintf("%s, ranks=%d", tt.preset, world), func(t *testing.T) {
				samples, err := dataset.Open(tt.data+":train=64", "train")
				if err != nil {
					t.Fatal(err)
				}
				c := preset(t, tt.preset)
				if err := errors.Join(algotest.Given(c, tt.flags), c.Fit(samples.Schema()), c.Validate()); err != nil {
					t.Fatal(err)
				}
				j := job{world: world, data: func(int, data.Source) data.Source { return samples }}
				j.allocatesNothing(t, c.Model())
			})
		}
	}
}

// preset is a copy of the config of a preset.
func preset(t *testing.T, name string) algo.Config {
	t.Helper()
	m, err := settings.MethodOf(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Config.Clone()
}

// allocatesNothing runs a job, of model if it is not nil, and counts.
func (j *job) allocatesNothing(t *testing.T, model algo.Model) {
	t.Helper()
	from, each := int64(20), int64(20)
	var counts [5]runtime.MemStats // at from, and after each steps more
	if raceEnabled {
		from, each = 2, 3
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects of its own
	to := from + each*int64(len(counts)-1)
	j.config = loop.Config{Batch: 8, Steps: to + 1, Seed: 1, CheckEvery: 10}
	j.load = func(c *loader.Config) { c.Prefetch, c.Flip = 2, model == nil }
	j.parts = func(rank int, p *loop.Parts) {
		if model != nil {
			p.Model = model
		}
		if rank == 0 {
			p.Observer = idle{}
		}
	}
	j.doing = func(rank int, step int64, what string) {
		if rank == 0 && what == "load" && step >= from && (step-from)%each == 0 {
			runtime.ReadMemStats(&counts[(step-from)/each])
		}
	}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	least := int64(math.MaxInt64)
	for i, after := range counts[1:] {
		n := int64(after.Mallocs - counts[i].Mallocs)
		t.Logf("%d objects, %d bytes in %d steps", n, after.TotalAlloc-counts[i].TotalAlloc, each)
		least = min(least, n)
	}
	if least > each/2 && !raceEnabled {
		t.Errorf("at least %d objects were allocated in %d steps, want at most %d", least, each, each/2)
	}
}

// TestResidentSizeIsConstant runs a thousand steps on two ranks, epochs,
// comparisons of the replicas and pictures included. After 200 steps the
// process has all the memory that it will ever need: half a mebibyte more would
// be 650 bytes a step. Garbage does not count: before the sizes are taken it is
// collected and given back.
func TestResidentSizeIsConstant(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("a thousand steps; the race detector's memory grows")
	}
	const steps, settled, most = 1000, 200, 512 << 10
	var sizes [steps + 1]int64
	j := job{world: 2, config: loop.Config{Batch: 2, Steps: steps, Seed: 1, CheckEvery: 50, SampleEvery: 100, SampleCount: 2}}
	j.load = func(c *loader.Config) { c.Prefetch = 2 }
	j.parts = func(rank int, p *loop.Parts) {
		if rank == 0 {
			p.Observer = idle{}
		}
	}
	j.doing = func(rank int, step int64, what string) {
		if rank == 0 && (what == "load" && step == settled || step == steps) {
			sizes[step] = resident(t)
		}
	}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	t.Logf("%d KiB resident after %d steps, %d KiB after %d", sizes[settled]>>10, settled, sizes[steps]>>10, steps)
	if grown := sizes[steps] - sizes[settled]; sizes[settled] <= 0 || grown > most {
		t.Errorf("the resident size grew by %d bytes in %d steps, want at most %d", grown, steps-settled, most)
	}
}

// resident is how much memory of this process is in RAM, in bytes, after all that
// nobody needs is given back. Huge pages do not count: the kernel makes one of a
// table of the Go runtime's that has hardly a page in use, whenever it finds time.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	kib := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		var name string
		var n int64
		if _, err := fmt.Sscanf(line, "%s %d kB", &name, &n); err == nil {
			kib[name] = n
		}
	}
	if kib["Rss:"] == 0 {
		t.Fatalf("/proc/self/smaps_rollup has no Rss: %s", text)
	}
	return (kib["Rss:"] - kib["AnonHugePages:"]) << 10
}
