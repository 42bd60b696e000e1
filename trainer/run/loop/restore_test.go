package loop_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

func TestCheckpointsArePruned(t *testing.T) {
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 5, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 1, CkptKeep: 2}}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	entries, err := os.ReadDir(j.config.CkptDir)
	if err != nil || len(entries) != 2 || entries[0].Name() != ckpt.Name(4) || entries[1].Name() != ckpt.Name(5) {
		t.Errorf("left are %v (%v), want the checkpoints of steps 4 and 5", entries, err)
	}
	if got := j.seen.saved; len(got) != 5 {
		t.Errorf("checkpoints were announced at %v, want 5 of them", got)
	}
}

// TestKilledBeforePruning: a run that was killed when its last checkpoint was in place, and
// those before it were not removed, or only in part, has them removed when it goes on, though
// it writes no other.
func TestKilledBeforePruning(t *testing.T) {
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 1}}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if err := os.Mkdir(filepath.Join(j.config.CkptDir, ".old-"+ckpt.Name(0)+"-ABCDEFGH"), 0o755); err != nil {
		t.Fatal(err)
	}
	j.config.Resume, j.config.CkptKeep = true, 1
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if entries, err := os.ReadDir(j.config.CkptDir); err != nil || len(entries) != 1 || entries[0].Name() != ckpt.Name(2) {
		t.Errorf("left are %v (%v), want the checkpoint of step 2", entries, err)
	}
}

// TestOldCheckpointsThatStay: a run does not end because what it no longer needs cannot be
// removed, as on NFS while somebody reads it.
func TestOldCheckpointsThatStay(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("wants an ordinary user, and this is root, who may remove anything; TestGoingBackKeepsCheckpoints is for both")
	}
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 1, CkptKeep: 1}}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	first := filepath.Join(j.config.CkptDir, ckpt.Name(1))
	if err := os.Chmod(first, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it has another name then
		hidden, _ := filepath.Glob(filepath.Join(j.config.CkptDir, ".old-*"))
		for _, path := range append(hidden, first) {
			_ = os.Chmod(path, 0o755) // one of them
		}
	})
	j.config.Resume, j.config.Steps = true, 4
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if steps, err := ckpt.Steps(j.config.CkptDir); err != nil || !slices.Equal(steps, []int64{4}) {
		t.Errorf("left are the checkpoints of steps %v (%v), want that of step 4", steps, err)
	}
}

// TestGoingBackKeepsCheckpoints resumes behind a damaged checkpoint and ends before its
// step: what the run has then is its own newest one.
func TestGoingBackKeepsCheckpoints(t *testing.T) {
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 2}}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	damage(t, filepath.Join(j.config.CkptDir, ckpt.Name(4)))
	j.config.Resume, j.config.Steps, j.config.CkptKeep = true, 3, 1
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if path, _, _, err := ckpt.ReadLatest(j.config.CkptDir, slog.New(slog.DiscardHandler)); err != nil || filepath.Base(path) != ckpt.Name(3) {
		t.Errorf("the newest whole checkpoint is %s (%v), want that of step 3", path, err)
	}
}

// TestResumeWithoutCheckpoint begins at the beginning.
func TestResumeWithoutCheckpoint(t *testing.T) {
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, CkptDir: t.TempDir(), Resume: true}}
	if _, errs := j.run(t); errs[0] != nil || len(j.seen.records) != 1 {
		t.Errorf("%v after %d steps", errs[0], len(j.seen.records))
	}
}

// TestRestoreRefuses changes a checkpoint, or what is resumed from it.
func TestRestoreRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func(*loop.Config)
		alg    func(*bidvl.Config)
		ckpt   func(*ckpt.State, map[string][]ckpt.Named)
		want   string
	}{
		{name: "other digest", config: func(c *loop.Config) { c.Digest = "another" }, want: "was made with other settings (digest "},
		{name: "other seed", config: func(c *loop.Config) { c.Seed = 2 }, want: "seed 1; now "},
		{name: "other width", alg: func(c *bidvl.Config) { c.Net.Width = 8 }, want: "was it made with another --width or --latent?"},
		{name: "no moments", ckpt: func(_ *ckpt.State, g map[string][]ckpt.Named) { delete(g, ckpt.Optimizer) }, want: "which the model needs"},
		{name: "a weight is missing", ckpt: func(_ *ckpt.State, g map[string][]ckpt.Named) { g[ckpt.Weights] = g[ckpt.Weights][1:] }, want: "has no tensor "},
		{name: "a weight of as many numbers", ckpt: func(_ *ckpt.State, g map[string][]ckpt.Named) {
			w := &g[ckpt.Weights][0]
			w.Tensor = exec.NewTensor(graph.Type{DType: graph.F64, Shape: w.Tensor.Type.Shape})
		}, want: "was it made with another --width or --latent?"},
		{name: "loader's state", ckpt: func(s *ckpt.State, _ map[string][]ckpt.Named) { s.Loader = json.RawMessage(`[1]`) }, want: "state of the loader"},
		{name: "loader's place", ckpt: func(s *ckpt.State, _ map[string][]ckpt.Named) { s.Loader = json.RawMessage(`{"epoch":-1}`) }, want: ckpt.Name(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, Digest: "one", CkptDir: t.TempDir()}}
			if _, errs := j.run(t); errs[0] != nil {
				t.Fatal(errs[0])
			}
			if c.ckpt != nil {
				rewrite(t, j.config.CkptDir, c.ckpt)
			}
			j.config.Steps, j.config.Resume, j.alg = 2, true, c.alg
			if c.config != nil {
				c.config(&j.config)
			}
			_, errs := j.run(t)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), c.want) || !strings.Contains(errs[0].Error(), j.config.CkptDir) {
				t.Errorf("got %v, want an error with %q that names the checkpoint", errs[0], c.want)
			}
			if len(j.seen.records) != 0 {
				t.Error("a step was run")
			}
		})
	}
}

// rewrite changes the newest checkpoint in dir.
func rewrite(t *testing.T, dir string, change func(*ckpt.State, map[string][]ckpt.Named)) {
	t.Helper()
	path, _, _, err := ckpt.ReadLatest(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	state, groups, err := ckpt.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	change(&state, groups)
	if _, err := ckpt.Write(dir, state, groups); err != nil {
		t.Fatal(err)
	}
}

// TestRanksSendCheckpoints resumes on ranks with disks of their own, one of which has
// nothing, or an older checkpoint, or the only one: all have the numbers of the run that
// was not interrupted, and each host keeps what it was sent.
func TestRanksSendCheckpoints(t *testing.T) {
	const world = 2
	whole := job{world: world, config: loop.Config{Batch: 4, Steps: 3, Seed: 1, Digest: "one", CkptDir: t.TempDir(), CkptEvery: 1}}
	if _, errs := whole.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	for name, steps := range map[string][world]int64{
		"one is new":               {2, 0},
		"rank 0 has lost its last": {1, 2},
		"none has any":             {0, 0},
		"all steps were done":      {2, 3},
	} {
		if testing.Short() && name != "rank 0 has lost its last" {
			continue // the same code
		}
		t.Run(name, func(t *testing.T) {
			dirs := []string{t.TempDir(), t.TempDir()}
			for r, n := range steps {
				if n == 0 {
					continue
				}
				if err := os.CopyFS(filepath.Join(dirs[r], ckpt.Name(n)), os.DirFS(filepath.Join(whole.config.CkptDir, ckpt.Name(n)))); err != nil {
					t.Fatal(err)
				}
			}
			j := job{world: world, config: loop.Config{Batch: 4, Steps: 3, Seed: 1, Digest: "one", Resume: true}, dirs: dirs}
			other := &watch{}
			j.parts = func(rank int, p *loop.Parts) {
				if rank == 1 {
					p.Observer = other
				}
			}
			_, errs := j.run(t)
			for r, err := range errs {
				if err != nil {
					t.Fatalf("rank %d: %v", r, err)
				}
			}
			got, want := j.seen.records, whole.seen.records
			if n := 3 - int(max(steps[0], steps[1])); len(got) != n {
				t.Fatalf("%d steps were run, want %d", len(got), n)
			}
			for i, w := range want[3-len(got):] {
				if got[i].Step != w.Step || !slices.Equal(got[i].Values, w.Values) {
					t.Errorf("step %d: the numbers are %v, want %v", w.Step, got[i], w)
				}
			}
			for r, seen := range []*watch{j.seen, other} {
				sameCheckpoints(t, dirs[r], whole.config.CkptDir, steps[r], max(steps[0], steps[1]), 3)
				if slices.Contains(seen.saved, steps[r]) {
					t.Errorf("rank %d has written again what it had: steps %v", r, seen.saved)
				}
			}
		})
	}
}

// sameCheckpoints makes sure that dir holds checkpoints of these steps, but of 0, and no
// others, and that their tensors are those of the folder want.
func sameCheckpoints(t *testing.T, dir, want string, steps ...int64) {
	t.Helper()
	steps = slices.Compact(slices.DeleteFunc(steps, func(n int64) bool { return n == 0 }))
	if got, err := ckpt.Steps(dir); err != nil || !slices.Equal(got, steps) {
		t.Errorf("%s holds checkpoints of steps %v (%v), want %v", dir, got, err, steps)
		return
	}
	for _, n := range steps {
		_, got, err := ckpt.Read(filepath.Join(dir, ckpt.Name(n)))
		if err != nil {
			t.Error(err)
			continue
		}
		_, groups, err := ckpt.Read(filepath.Join(want, ckpt.Name(n)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, groups) {
			t.Errorf("%s: the checkpoint of step %d is another than that of the run that was not interrupted", dir, n)
		}
	}
}

// damage changes a bit of the weights of a checkpoint.
func damage(t *testing.T, path string) {
	t.Helper()
	file := filepath.Join(path, "weights.safetensors")
	weights, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	weights[len(weights)-1] ^= 1
	if err := os.WriteFile(file, weights, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSkippedIsToldTogether: what ranks have skipped they tell once all have looked, however
// late one comes to it: a launcher shows equal lines of a moment as one.
func TestSkippedIsToldTogether(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 1}}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	damage(t, filepath.Join(j.config.CkptDir, ckpt.Name(2)))
	j.config.Resume = true
	told := make(chan string, 9)
	j.parts = func(rank int, p *loop.Parts) {
		p.Log = slog.New(slog.NewTextHandler(sentTo(told), nil))
		if rank == 0 {
			return
		}
		select {
		case line := <-told:
			t.Errorf("told before all have looked: %s", line)
		case <-time.After(300 * time.Millisecond):
		}
	}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	close(told)
	n := 0
	for line := range told {
		if !strings.Contains(line, "checkpoint skipped") || !strings.Contains(line, ckpt.Name(2)) {
			t.Errorf("told: %s", line)
		}
		n++
	}
	if n != 2 {
		t.Errorf("told %d times by two ranks", n)
	}
}

// sentTo sends what is written on.
type sentTo chan<- string

func (s sentTo) Write(b []byte) (int, error) {
	s <- string(b)
	return len(b), nil
}

// TestDamagedHostIsSentCheckpoint resumes where one host's only checkpoint is damaged: it
// is sent that of the other, which takes the damaged one's place. If no host has a whole
// one nothing is begun anew.
func TestDamagedHostIsSentCheckpoint(t *testing.T) {
	whole := job{world: 2, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, Digest: "one", CkptDir: t.TempDir()}}
	if _, errs := whole.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	for _, other := range []string{"whole", "damaged", "none"} {
		t.Run("the other has "+other, func(t *testing.T) {
			dirs := []string{t.TempDir(), t.TempDir()}
			for r := range dirs {
				if r == 1 && other == "none" {
					continue
				}
				path := filepath.Join(dirs[r], ckpt.Name(2))
				if err := os.CopyFS(path, os.DirFS(filepath.Join(whole.config.CkptDir, ckpt.Name(2)))); err != nil {
					t.Fatal(err)
				}
				if r == 0 || other == "damaged" {
					damage(t, path)
				}
			}
			j := job{world: 2, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, Digest: "one", Resume: true}, dirs: dirs}
			var log strings.Builder
			j.parts = func(rank int, p *loop.Parts) {
				if rank == 0 {
					p.Log = slog.New(slog.NewTextHandler(&log, nil))
				}
			}
			_, errs := j.run(t)
			if other == "whole" {
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				sameCheckpoints(t, dirs[0], whole.config.CkptDir, 2)
				if !strings.Contains(log.String(), "no checkpoint of this host can be used, so another rank sends the job's") {
					t.Errorf("the log does not say so: %s", log.String())
				}
				return
			}
			want := []string{dirs[0], "the checkpoints on the host of rank 0 are all damaged, and no rank has another"}
			if other == "damaged" {
				want[1] = dirs[1]
			}
			for r, err := range errs { // the other rank may have ended the group already
				if err == nil || !errors.Is(err, collective.ErrAborted) && !strings.Contains(err.Error(), want[r]) {
					t.Errorf("rank %d: %v, want %q", r, err, want[r])
				}
			}
		})
	}
}

// TestRankRefusesCheckpoint has a rank receive one that was made with other settings.
func TestRankRefusesCheckpoint(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	first := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, Digest: "one", CkptDir: dirs[1]}}
	if _, errs := first.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 2, Seed: 1, Digest: "two", Resume: true}, dirs: dirs}
	_, errs := j.run(t)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "the checkpoint of rank 1 was made with other settings") {
		t.Errorf("got %v", errs[0])
	}
}
