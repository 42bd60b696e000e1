package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/data/synth"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// job is a run of some ranks in this process.
type job struct {
	world  int
	config loop.Config
	alg    func(*bidvl.Config)                       // changes the algorithm; may be nil
	parts  func(rank int, p *loop.Parts)             // changes a rank's parts; may be nil
	load   func(*loader.Config)                      // changes the loader; may be nil
	data   func(rank int, s data.Source) data.Source // changes a rank's data; may be nil
	dirs   []string                                  // each rank's CkptDir, where they differ
	plan   func(rank int, c *loop.Config)            // changes a rank's config; may be nil
	vars   []exec.Vars                               // of each rank, while it runs
	seen   *watch                                    // what rank 0 saw
	doing  func(rank int, step int64, what string)   // told what a rank does next; may be nil

	reduced []collective.Comm // what programs reduce over, where it is not the loop's
}

// spy keeps the variables that a backend makes.
type spy struct {
	exec.Backend
	keep func(exec.Vars)
}

func (s spy) NewVars() exec.Vars {
	v := s.Backend.NewVars()
	s.keep(v)
	return v
}

// run runs all ranks and returns how each ended.
func (j *job) run(t *testing.T) ([]loop.Outcome, []error) {
	t.Helper()
	comms := make([]collective.Comm, j.world)
	if j.world > 1 {
		local, err := host.NewLocal(t.Context(), j.world)
		if err != nil {
			t.Fatal(err)
		}
		for r, c := range local {
			comms[r] = c
		}
	}
	outcomes, errs := make([]loop.Outcome, j.world), make([]error, j.world)
	j.vars, j.seen = make([]exec.Vars, j.world), nil
	var wg sync.WaitGroup
	for r := range j.world {
		wg.Go(func() {
			outcomes[r], errs[r] = j.rank(t.Context(), r, comms[r])
			if comms[r] == nil {
				return
			}
			if errs[r] != nil {
				comms[r].Abort(errs[r])
				if j.reduced != nil {
					j.reduced[r].Abort(errs[r])
				}
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		if c != nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	return outcomes, errs
}

func (j *job) rank(ctx context.Context, rank int, comm collective.Comm) (outcome loop.Outcome, err error) {
	alg := bidvl.CIFAR10().Config
	alg.Net.Width, alg.Net.Latent = 4, 3
	if j.alg != nil {
		j.alg(&alg)
	}
	pictures, err := synth.Open(synth.Config{Train: 64}, "train")
	if err != nil {
		return 0, err
	}
	var src data.Source = pictures
	if j.data != nil {
		src = j.data(rank, src)
	}
	load := loader.Config{Seed: j.config.Seed, Batch: j.config.Batch, Shuffle: true, Rank: rank, World: j.world}
	if j.load != nil {
		j.load(&load)
	}
	ld, err := loader.New(src, load)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	p := loop.Parts{Model: alg, Backend: spy{backend, func(v exec.Vars) { j.vars[rank] = v }}, Comm: comm, Loader: ld, Log: slog.New(slog.DiscardHandler)}
	if rank == 0 {
		j.seen = &watch{}
		p.Observer = j.seen
	}
	if j.doing != nil {
		p.Progress = func(step int64, what string) { j.doing(rank, step, what) }
	}
	if j.parts != nil {
		j.parts(rank, &p)
	}
	config := j.config
	if j.dirs != nil {
		config.CkptDir = j.dirs[rank]
	}
	if j.plan != nil {
		j.plan(rank, &config)
	}
	tr, err := loop.New(ctx, config, p)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	return tr.Run(ctx)
}

// TestStopIsShared asks rank 1 alone to stop.
func TestStopIsShared(t *testing.T) {
	stop := make(chan struct{})
	dir := t.TempDir()
	j := job{
		world: 2, config: loop.Config{Batch: 4, Steps: 1000, Seed: 1, CkptDir: dir},
		parts: func(rank int, p *loop.Parts) {
			if rank == 1 {
				p.Stop = stop
			}
		},
		doing: func(rank int, step int64, what string) {
			if rank == 1 && step == 2 && what == "load" {
				close(stop)
			}
		},
	}
	outcomes, errs := j.run(t)
	for r := range outcomes {
		if outcomes[r] != loop.Stopped || errs[r] != nil {
			t.Errorf("rank %d: outcome %v, error %v, want it stopped", r, outcomes[r], errs[r])
		}
	}
	if n := len(j.seen.records); n != 3 {
		t.Errorf("stopped after %d steps, want 3: the one under way is finished", n)
	}
	if path, _, _, err := ckpt.ReadLatest(dir, slog.New(slog.DiscardHandler)); err != nil || filepath.Base(path) != ckpt.Name(3) {
		t.Errorf("newest checkpoint is %q (%v), want that of step 3", path, err)
	}
}

// TestStopAtTheEnd asks to stop during the last step: nothing is left to do.
func TestStopAtTheEnd(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1}, parts: func(_ int, p *loop.Parts) { p.Stop = stop }}
	if outcomes, errs := j.run(t); outcomes[0] != loop.Finished || errs[0] != nil {
		t.Errorf("outcome %v, error %v, want it finished", outcomes[0], errs[0])
	}
}

func TestDivergenceIsSeenByAll(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 50, Seed: 1, CkptDir: t.TempDir()}, alg: func(c *bidvl.Config) { c.Lower.LR = 1e30 }}
	_, errs := j.run(t)
	for r, err := range errs {
		if !errors.Is(err, loop.ErrDiverged) || err.Error() != errs[0].Error() {
			t.Errorf("rank %d: %v, want the divergence that rank 0 saw: %v", r, err, errs[0])
		}
	}
	if left, err := os.ReadDir(j.config.CkptDir); err != nil || len(left) != 0 {
		t.Errorf("checkpoints of a diverged run: %v %v", left, err)
	}
}

// late makes programs whose runs end late, and that tell of their end.
type late struct {
	exec.Backend
	wait   func() error
	closed func()
}

type lateProgram struct {
	exec.Program
	of late
}

func (b late) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p, err := b.Backend.Compile(g, o)
	if err != nil {
		return nil, err
	}
	return lateProgram{p, b}, nil
}

func (p lateProgram) Wait(ctx context.Context) error {
	return errors.Join(p.Program.Wait(ctx), p.of.wait())
}

func (p lateProgram) Close() error {
	p.of.closed()
	return p.Program.Close()
}

// A rank that still computes the step in which the run diverged, after its last all-reduce,
// sees that it did: the others do not end the job before.
func TestDivergenceIsSeenByTheSlowest(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 50, Seed: 1}, alg: func(c *bidvl.Config) { c.VAEWeight = 3e38 }}
	left := make(chan struct{}) // rank 1 has
	slow := func() error {
		select {
		case <-left:
			return errors.New("another rank has ended the job")
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	}
	j.parts = func(rank int, p *loop.Parts) {
		if rank == 0 {
			p.Backend = late{p.Backend, slow, func() {}}
		} else {
			p.Backend = late{p.Backend, func() error { return nil }, func() { close(left) }}
		}
	}
	if _, errs := j.run(t); !errors.Is(errs[0], loop.ErrDiverged) || !errors.Is(errs[1], loop.ErrDiverged) {
		t.Errorf("the ranks end with %v", errs)
	}
}

// Before the first step no learning rate has moved a weight: something else is wrong.
func TestDivergenceOfTheFirstStep(t *testing.T) {
	for want, alg := range map[string]func(c *bidvl.Config){
		"at step 0: in the first step, so some setting": func(c *bidvl.Config) { c.VAEWeight = 3e38 },
		": lower the learning rates in a new run":       func(c *bidvl.Config) { c.Lower.LR = 1e30 },
	} {
		j := job{world: 1, config: loop.Config{Batch: 4, Steps: 50, Seed: 1}, alg: alg}
		if _, errs := j.run(t); !errors.Is(errs[0], loop.ErrDiverged) || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v, want %q", errs[0], want)
		}
	}
}

// knowing is a model that judges its reports.
type knowing struct{ algo.Model }

func (knowing) Diagnose(report []float64) string {
	if math.IsNaN(report[0]) {
		return ""
	}
	return "all is lost"
}

// What a model knows of a step that has come apart ends the run, whether or not all
// numbers are finite.
func TestTheModelSaysWhatCameApart(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 50, Seed: 1}}
	j.parts = func(_ int, p *loop.Parts) { p.Model = knowing{p.Model} }
	_, errs := j.run(t)
	for r, err := range errs {
		if !errors.Is(err, loop.ErrDiverged) || err.Error() != "training diverged: at step 0 all is lost" {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestReplicasAreCompared changes one bit of one weight of rank 1.
func TestReplicasAreCompared(t *testing.T) {
	const name = "generator.conv1.weight"
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 10, Seed: 1, CheckEvery: 2}}
	j.doing = func(rank int, step int64, what string) {
		if rank != 1 || step != 4 || what != "compare replicas" {
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
	_, errs := j.run(t)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("rank %d: %v, want an error that names %s and rank 1", r, err, name)
		}
	}
	if n := len(j.seen.records); n != 4 {
		t.Errorf("%d steps were run, want 4", n)
	}
}

// failing is an observer that fails at one point.
type failing struct{ at string }

var errDisk = errors.New("no space left")

func (f *failing) fail(at string) error {
	if f.at == at {
		return errDisk
	}
	return nil
}
func (f *failing) Started(int64) error               { return f.fail("started") }
func (f *failing) Stepped(loop.Record) error         { return f.fail("stepped") }
func (f *failing) Sampled(int64, *exec.Tensor) error { return f.fail("sampled") }
func (f *failing) Saving(int64) error                { return f.fail("saving") }
func (f *failing) Saved(int64) error                 { return f.fail("saved") }
func (f *failing) Ended(int64) error                 { return f.fail("ended") }

func TestObserversErrorsEndTheRun(t *testing.T) {
	for _, at := range []string{"started", "stepped", "sampled", "saving", "ended"} {
		t.Run(at, func(t *testing.T) {
			j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, SampleCount: 2, CkptDir: t.TempDir()}}
			j.parts = func(_ int, p *loop.Parts) { p.Observer = &failing{at: at} }
			if _, errs := j.run(t); !errors.Is(errs[0], errDisk) {
				t.Errorf("got %v", errs[0])
			}
			kept, err := filepath.Glob(filepath.Join(j.config.CkptDir, "step-*"))
			if done := at == "sampled" || at == "ended"; err != nil || (len(kept) == 1) != done {
				t.Errorf("checkpoints %v, %v; want one where all steps are done: %v", kept, err, done)
			}
		})
	}
}

// slow takes its time over samples, and leaving is told of the end of a run.
type (
	slow struct {
		watch
		sampled func(step int64)
	}
	leaving struct {
		watch
		ended func()
	}
)

func (s *slow) Sampled(step int64, _ *exec.Tensor) error {
	time.Sleep(50 * time.Millisecond)
	s.sampled(step)
	return nil
}
func (l *leaving) Ended(int64) error { l.ended(); return nil }

// TestRanksWaitForSamples holds rank 0 over its samples: the other rank begins no step
// and does not end meanwhile, as either may have a limit for how late rank 0 is.
func TestRanksWaitForSamples(t *testing.T) {
	const steps = 2
	var begun atomic.Int64 // steps of rank 1, and its end
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: steps, Seed: 1, SampleEvery: 1, SampleCount: 2}}
	j.parts = func(rank int, p *loop.Parts) {
		if rank == 1 {
			p.Observer = &leaving{ended: func() { begun.Store(steps + 1) }}
			return
		}
		p.Observer = &slow{sampled: func(step int64) {
			if n := begun.Load(); n > step {
				t.Errorf("rank 1 has begun step %d of %d, or has ended, while rank 0 draws after %d", n, steps, step)
			}
		}}
	}
	j.doing = func(rank int, step int64, what string) {
		if rank == 1 && what == "step" {
			begun.Store(step + 1)
		}
	}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
}

// TestRanksWaitForCheckpoints: no rank begins a step before the checkpoint of those before
// it is in place, so what follows, and the end, is never without it.
func TestRanksWaitForCheckpoints(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptEvery: 1, CkptDir: t.TempDir()}}
	j.doing = func(rank int, step int64, what string) {
		if rank == 0 || what != "step" || step == 0 {
			return
		}
		if _, err := os.Stat(filepath.Join(j.config.CkptDir, ckpt.Name(step))); err != nil {
			t.Errorf("rank %d begins step %d: %v", rank, step, err)
		}
	}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
}

// TestFailedCheckpointEndsAllRanks lets rank 0 fail where rank 1 waits for it.
func TestFailedCheckpointEndsAllRanks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptEvery: 1, CkptDir: filepath.Join(file, "ckpt")}}
	_, errs := j.run(t)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "not a directory") {
		t.Errorf("rank 0: %v", errs[0])
	}
	if !errors.Is(errs[1], collective.ErrAborted) {
		t.Errorf("rank 1: %v, want the end of the group", errs[1])
	}
}
