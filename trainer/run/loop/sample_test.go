package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// transitions is how many a grid of wandering takes.
const transitions = 100

// wandering is a model whose grid is a chain, which is told of each transition.
type wandering struct {
	algo.Model
	at func(i int)
}

func (w wandering) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	x := chain.Var("x", graph.T(graph.F32, n, 3, 32, 32))
	x.Init = nn.Ones
	var b graph.Builder
	xs := b.Var(x.Name, x.Type)
	b.Assign(xs, b.Scale(xs, 1.01))
	g, err := b.Build()
	feed := func(exec.Program) func(int) { return w.at }
	return chain.Plan{Vars: []nn.Variable{x}, Out: x.Name, Stages: []chain.Stage{{Name: "wander", Graph: g, Times: transitions, Feed: feed}}}, err
}

// TestStopDuringSamples asks all ranks, or rank 0 alone, to stop while a grid is drawn:
// the grid is left out, and all end at once after that step, with its checkpoint. After
// the last step the run is stopped as well: its samples are still to be drawn.
func TestStopDuringSamples(t *testing.T) {
	for name, c := range map[string]struct {
		world int
		every int64
		done  int64 // steps
		asked int   // ranks
	}{
		"alone":                       {1, 2, 2, 1},
		"ranks":                       {2, 2, 2, 2},
		"one rank":                    {2, 2, 2, 1},
		"after the last step":         {2, 0, 3, 2},
		"one rank after the last one": {2, 0, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			begun := 0
			var log strings.Builder
			j := job{world: c.world, config: loop.Config{Batch: 4, Steps: 3, Seed: 1, SampleEvery: c.every, SampleCount: 2, CkptDir: t.TempDir()}}
			j.parts = func(rank int, p *loop.Parts) {
				p.Model = wandering{p.Model, func(i int) {
					if begun++; begun == 1 {
						close(stop)
					}
				}}
				if rank < c.asked {
					p.Stop = stop
				}
				if rank == 0 {
					p.Log = slog.New(slog.NewTextHandler(&log, nil))
				}
			}
			outcomes, errs := j.run(t)
			for r := range outcomes {
				if outcomes[r] != loop.Stopped || errs[r] != nil {
					t.Errorf("rank %d: outcome %v, error %v, want it stopped", r, outcomes[r], errs[r])
				}
			}
			if begun == transitions || j.seen.samples != 0 {
				t.Errorf("%d of %d transitions and %d grids, want the first left out", begun, transitions, j.seen.samples)
			}
			if n := int64(len(j.seen.records)); n != c.done {
				t.Errorf("stopped after %d steps, want %d", n, c.done)
			}
			if path, _, _, err := ckpt.ReadLatest(j.config.CkptDir, slog.New(slog.DiscardHandler)); err != nil || filepath.Base(path) != ckpt.Name(c.done) {
				t.Errorf("newest checkpoint is %q (%v), want that of step %d", path, err, c.done)
			}
			if n := strings.Count(log.String(), "asked to stop, so these samples are left out"); n != 1 {
				t.Errorf("the log says so %d times: %s", n, log.String())
			}
		})
	}
}

// TestStopBeforeShortSamples asks to stop during the last step. Samples of one transition
// are as good as a step: they are drawn, and the run is finished.
func TestStopBeforeShortSamples(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, SampleCount: 2}, parts: func(_ int, p *loop.Parts) { p.Stop = stop }}
	outcomes, errs := j.run(t)
	if outcomes[0] != loop.Finished || errors.Join(errs...) != nil || j.seen.samples != 1 {
		t.Errorf("outcome %v, error %v, %d grids, want it finished with one", outcomes[0], errs[0], j.seen.samples)
	}
}

// lengthy is a model whose grid is one transition of many products, of 2 s and more.
type lengthy struct {
	algo.Model
	at func(i int)
}

func (l lengthy) Sample(nn.Mode, int) (chain.Plan, error) {
	x := chain.Var("x", graph.T(graph.F32, 2048, 2048))
	var b graph.Builder
	v := b.Var(x.Name, x.Type)
	y := v
	for range 400 {
		y = b.MatMul(y, y, false, false)
	}
	b.Assign(v, y)
	g, err := b.Build()
	feed := func(exec.Program) func(int) { return l.at }
	return chain.Plan{Vars: []nn.Variable{x}, Out: x.Name, Stages: []chain.Stage{{Name: "slow", Graph: g, Times: 1, Feed: feed}}}, err
}

// TestStopDuringOneTransition asks to stop while the only transition of a grid runs.
func TestStopDuringOneTransition(t *testing.T) {
	stop := make(chan struct{})
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, SampleCount: 2}}
	j.parts = func(_ int, p *loop.Parts) {
		p.Model, p.Stop = lengthy{p.Model, func(int) { close(stop) }}, stop
	}
	if outcomes, errs := j.run(t); outcomes[0] != loop.Stopped || errs[0] != nil || j.seen.samples != 0 {
		t.Errorf("outcome %v, error %v, %d grids, want it stopped with none", outcomes[0], errs[0], j.seen.samples)
	}
}

// TestSavesBeforeManySamples looks for the checkpoint of a step when its samples are shown.
func TestSavesBeforeManySamples(t *testing.T) {
	for count, want := range map[int]bool{2: false, 1025: true} {
		for world := 1; world <= 2; world++ {
			j := job{world: world, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, SampleEvery: 1, SampleCount: count, CkptDir: t.TempDir()}}
			var saved []bool
			j.parts = func(rank int, p *loop.Parts) {
				p.Model = wandering{p.Model, func(i int) {
					if i == 0 {
						_, err := os.Stat(filepath.Join(j.config.CkptDir, ckpt.Name(1)))
						saved = append(saved, err == nil)
					}
				}}
			}
			if _, errs := j.run(t); errors.Join(errs...) != nil {
				t.Fatal(errors.Join(errs...))
			}
			if len(saved) == 0 || saved[0] != want {
				t.Errorf("%d samples on %d ranks: a checkpoint of step 1 before each grid: %v, want first %v", count, world, saved, want)
			}
		}
	}
}

// TestLastSamplesAreDrawnByAResume ends a run between its last checkpoint and its last
// samples, by a failure or a request to stop: resumed, with no step left, it draws those
// that it would have drawn.
func TestLastSamplesAreDrawnByAResume(t *testing.T) {
	const chained = "asked to stop while a chain draws"
	for world := 1; world <= 2; world++ {
		for _, how := range []string{"the disk is full", chained} {
			t.Run(fmt.Sprintf("%d ranks, %s", world, how), func(t *testing.T) {
				whole := job{world: world, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, SampleCount: 2, CkptDir: t.TempDir()}}
				at := func(int) {}
				model := func(p *loop.Parts) {
					if how == chained {
						p.Model = wandering{p.Model, func(i int) { at(i) }}
					}
				}
				whole.parts = func(_ int, p *loop.Parts) { model(p) }
				if _, errs := whole.run(t); errors.Join(errs...) != nil {
					t.Fatal(errors.Join(errs...))
				}
				j := job{world: world, config: whole.config}
				j.config.CkptDir = t.TempDir()
				stop := make(chan struct{})
				at = func(i int) {
					if i == 0 {
						close(stop)
					}
				}
				j.parts = func(rank int, p *loop.Parts) {
					if model(p); rank == 0 && how == chained {
						p.Stop = stop
					} else if rank == 0 {
						p.Observer = &failing{at: "sampled"}
					}
				}
				if outcomes, errs := j.run(t); outcomes[0] == loop.Finished || errs[0] != nil && !errors.Is(errs[0], errDisk) {
					t.Fatalf("outcome %v, error %v, want it ended before its samples", outcomes[0], errs[0])
				}
				at, j.parts, j.config.Resume = func(int) {}, whole.parts, true
				outcomes, errs := j.run(t)
				if outcomes[0] != loop.Finished || errors.Join(errs...) != nil {
					t.Fatalf("outcome %v, error %v", outcomes[0], errors.Join(errs...))
				}
				if n := len(j.seen.records); n != 0 || j.seen.samples != 1 || len(j.seen.saved) != 0 {
					t.Fatalf("%d steps, %d grids, checkpoints of %v, want no step, one grid and no checkpoint", n, j.seen.samples, j.seen.saved)
				}
				if !bytes.Equal(j.seen.grid.Bytes(), whole.seen.grid.Bytes()) {
					t.Error("the samples are others than those of the run that was not ended")
				}
			})
		}
	}
}
