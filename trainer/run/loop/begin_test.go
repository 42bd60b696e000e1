package loop_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// origin is the checkpoint of a run of three steps, and its digest.
func origin(t *testing.T) (path, digest string) {
	t.Helper()
	j := job{world: 1, config: loop.Config{Batch: 4, Steps: 3, Seed: 1, CkptDir: t.TempDir()}}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	path = filepath.Join(j.config.CkptDir, ckpt.Name(3))
	digest, err := ckpt.LearnedDigest(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

// TestBeginsWithWeights: before its first step a run, of another seed, of one rank or two,
// and with parts of moments, has the weights and the layers' state of the checkpoint that it
// begins with, and optimisers that have done nothing. Once it has a checkpoint of its own it
// goes on from that, and the other may be gone.
func TestBeginsWithWeights(t *testing.T) {
	from, digest := origin(t)
	_, groups, err := ckpt.Read(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range []job{{world: 1}, {world: 2}, {world: 2, config: loop.Config{ShardOptimizer: true}}} {
		j.config.Batch, j.config.Steps, j.config.Seed, j.config.CkptDir = 4, 2, 7, t.TempDir()
		j.config.From, j.config.FromDigest = from, digest
		j.parts = func(rank int, p *loop.Parts) {
			if rank > 0 {
				return
			}
			p.Observer = started{j.seen, func() {
				for _, group := range []string{ckpt.Weights, ckpt.Buffers} {
					for _, n := range groups[group] {
						sameTensor(t, j.vars[0], n)
					}
				}
				for _, n := range groups[ckpt.Optimizer] {
					typ, _ := j.vars[0].Type(n.Name) // that of a part, where it has one
					sameTensor(t, j.vars[0], ckpt.Named{Name: n.Name, Tensor: exec.NewTensor(typ)})
				}
			}}
		}
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		j.parts, j.config.Resume, j.config.Steps, j.config.From = nil, true, 3, filepath.Join(t.TempDir(), "gone")
		if _, errs := j.run(t); errors.Join(errs...) != nil || len(j.seen.records) != 1 {
			t.Errorf("resumed it made %d steps, expected 1: %v", len(j.seen.records), errors.Join(errs...))
		}
	}
}

// TestBeginsWithSomeNetworks: those that are named have the weights and the layers' state of
// the checkpoint, on one rank or two, and with parts of moments; all else is as the seed has
// it.
func TestBeginsWithSomeNetworks(t *testing.T) {
	from, digest := origin(t)
	_, groups, err := ckpt.Read(from)
	if err != nil {
		t.Fatal(err)
	}
	begins := func(j job, look func(exec.Vars)) {
		j.config.Batch, j.config.Steps, j.config.Seed, j.config.CkptDir = 4, 1, 7, t.TempDir()
		j.parts = func(rank int, p *loop.Parts) {
			if rank == 0 {
				p.Observer = started{j.seen, func() { look(j.vars[0]) }}
			}
		}
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
	}
	seeds := map[string]ckpt.Named{}
	begins(job{world: 1}, func(vars exec.Vars) {
		for _, n := range slices.Concat(groups[ckpt.Weights], groups[ckpt.Buffers]) {
			value, err := vars.Get(n.Name)
			if err != nil {
				t.Fatal(err)
			}
			seeds[n.Name] = ckpt.Named{Name: n.Name, Tensor: value}
		}
	})
	some := loop.Config{From: from, FromDigest: digest, FromNetworks: []string{"inference", "generator"}}
	sharded := some
	sharded.ShardOptimizer = true
	for _, j := range []job{{world: 1, config: some}, {world: 2, config: some}, {world: 2, config: sharded}} {
		counts := map[string]int{}
		begins(j, func(vars exec.Vars) {
			for _, n := range slices.Concat(groups[ckpt.Weights], groups[ckpt.Buffers]) {
				network := nn.NetworkOf(n.Name)
				if network == "energy" {
					n = seeds[n.Name]
				}
				counts[network]++
				sameTensor(t, vars, n)
			}
		})
		if len(counts) != 3 || counts["energy"] == 0 {
			t.Errorf("%d ranks: so many variables of each network: %v", j.world, counts)
		}
	}
}

// started is told that a run is about to begin.
type started struct {
	*watch
	do func()
}

func (s started) Started(int64) error { s.do(); return nil }

// sameTensor compares a variable with what it is to be, bit for bit.
func sameTensor(t *testing.T, vars exec.Vars, want ckpt.Named) {
	t.Helper()
	got, err := vars.Get(want.Name)
	if err != nil || got.Type != want.Tensor.Type || string(got.Bytes()) != string(want.Tensor.Bytes()) {
		t.Errorf("%s is not as it was in the checkpoint, or not zero: %v", want.Name, err)
	}
}

// TestCannotBeginWith: what is no checkpoint, another than the run began with, damaged, or of
// another model is refused, by all ranks.
func TestCannotBeginWith(t *testing.T) {
	from, digest := origin(t)
	for want, spoil := range map[string]func(c *loop.Config, width *int){
		"gone: no such file or directory: it is the one that this run begins with, and was removed, ": func(c *loop.Config, _ *int) { c.From = filepath.Join(t.TempDir(), "gone") },
		"is not the checkpoint that this run began with":                                              func(c *loop.Config, _ *int) { c.FromDigest = "sha256:0123456789abcdef" },
		"the model wants f32[": func(_ *loop.Config, width *int) { *width = 8 },
		"the checkpoint is damaged: begin with another of its run, by --from-step": func(c *loop.Config, _ *int) {
			c.From = filepath.Join(t.TempDir(), filepath.Base(from))
			if err := os.CopyFS(c.From, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(c.From, ckpt.Weights+".safetensors")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-1] ^= 1
			if err := os.WriteFile(file, b, 0o666); err != nil {
				t.Fatal(err)
			}
		},
	} {
		j := job{world: 2, config: loop.Config{Batch: 4, Steps: 1, Seed: 1, From: from, FromDigest: digest}}
		width := 4
		spoil(&j.config, &width)
		j.alg = func(alg *bidvl.Config) { alg.Net.Width = width }
		_, errs := j.run(t)
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: got %v, expected %q", r, err, want)
			}
		}
	}
}
