package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/loop"
)

// naming makes programs that note, of every run, the name of its draws. What is run several
// times with the same name is noted once.
type naming struct {
	exec.Backend
	seen *[]string
}

type named struct {
	exec.Program
	name string
	seen *[]string
}

func (b naming) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p, err := b.Backend.Compile(g, o)
	if err != nil {
		return nil, err
	}
	return named{p, o.Name, b.seen}, nil
}

func (p named) Launch(ctx context.Context) error {
	if key := p.Input(algo.InputKey); key != nil { // it draws
		*p.seen = slices.Compact(append(*p.seen, fmt.Sprint(p.name, key.I64())))
	}
	return p.Program.Launch(ctx)
}

// Draws are named by the seed, the step and the first of the rank's samples, also those of
// what runs before a step, and after a resume.
func TestNamesOfDraws(t *testing.T) {
	for _, tt := range []struct {
		what string
		job  job
		want [2][]string // by rank
	}{
		{"pictures", job{config: loop.Config{Batch: 4}}, [2][]string{
			{"step[9 0 0]", "step[9 1 0]", "step[9 2 0]"},
			{"step[9 0 2]", "step[9 1 2]", "step[9 2 2]"},
		}},
		{"sentences, with a stage", job{
			config: loop.Config{Batch: 8},
			data:   func(int, data.Source) data.Source { return prose{} },
			parts:  func(_ int, p *loop.Parts) { p.Model = inferring(t, "true") },
		}, [2][]string{
			{"begin[9 0 0]", "step[9 0 0]", "begin[9 1 0]", "step[9 1 0]", "begin[9 2 0]", "step[9 2 0]"},
			{"begin[9 0 4]", "step[9 0 4]", "begin[9 1 4]", "step[9 1 4]", "begin[9 2 4]", "step[9 2 4]"},
		}},
	} {
		j, change, seen := tt.job, tt.job.parts, [2][]string{}
		j.world, j.config.Seed, j.config.Steps, j.config.CkptDir = 2, 9, 2, t.TempDir()
		j.parts = func(rank int, p *loop.Parts) {
			if change != nil {
				change(rank, p)
			}
			p.Backend = naming{p.Backend, &seen[rank]}
		}
		for range 2 {
			if _, errs := j.run(t); errors.Join(errs...) != nil {
				t.Fatal(errors.Join(errs...))
			}
			j.config.Steps, j.config.Resume = 3, true
		}
		for r := range seen {
			if !slices.Equal(seen[r], tt.want[r]) {
				t.Errorf("%s, rank %d: draws are named\n%q, want\n%q", tt.what, r, seen[r], tt.want[r])
			}
		}
	}
}

// Before the first step every variable has the value that the run's seed gives it.
func TestInitialWeightsAreOfTheSeed(t *testing.T) {
	for _, seed := range []uint64{9, 10} {
		var model algo.Model
		compared := false
		j := job{world: 1, config: loop.Config{Batch: 4, Steps: 1, Seed: seed}}
		j.parts = func(_ int, p *loop.Parts) { model = p.Model }
		j.doing = func(_ int, step int64, what string) {
			if step > 0 || what != "load" {
				return
			}
			_, specs, err := algo.StepOf(model, 0, 1, 4)
			if err != nil {
				t.Error(err)
			}
			for _, v := range specs {
				got, err := j.vars[0].Get(v.Name)
				if err != nil || !bytes.Equal(got.Bytes(), v.Value(seed).Bytes()) {
					t.Errorf("seed %d: %s has not the value of that seed, %v", seed, v.Name, err)
				}
				compared = true
			}
		}
		if _, errs := j.run(t); errs[0] != nil {
			t.Fatal(errs[0])
		}
		if !compared {
			t.Error("nothing was compared")
		}
	}
}
