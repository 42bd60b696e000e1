package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/loop"
)

// watch keeps what it is shown.
type watch struct {
	records []loop.Record
	saved   []int64
	samples int
	grid    *exec.Tensor // the last
	grids   [][]byte     // all
}

func (w *watch) Started(int64) error     { return nil }
func (w *watch) Saving(step int64) error { w.saved = append(w.saved, step); return nil }
func (w *watch) Saved(int64) error       { return nil }
func (w *watch) Ended(int64) error       { return nil }
func (w *watch) Sampled(_ int64, grid *exec.Tensor) error {
	w.samples++
	w.grid = exec.NewTensor(grid.Type)
	copy(w.grid.Bytes(), grid.Bytes())
	w.grids = append(w.grids, w.grid.Bytes())
	return nil
}
func (w *watch) Stepped(r loop.Record) error {
	r.Values = slices.Clone(r.Values)
	w.records = append(w.records, r)
	return nil
}

// TestResumeEqualsUninterrupted also changes the plan of checkpoints and grids,
// which must not matter.
func TestResumeEqualsUninterrupted(t *testing.T) {
	for world := 1; world <= 2; world++ {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			train := func(c loop.Config) *watch {
				j := job{world: world, config: c}
				if _, errs := j.run(t); errors.Join(errs...) != nil {
					t.Fatal(errors.Join(errs...))
				}
				return j.seen
			}
			whole := loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptDir: t.TempDir(), SampleCount: 4}
			want := train(whole)
			half := whole
			half.CkptDir, half.Steps, half.CkptEvery, half.SampleEvery = t.TempDir(), 2, 1, 1
			first := train(half)
			half.Steps, half.Resume = 4, true
			second := train(half)
			got := append(first.records, second.records...)
			if len(want.records) != 4 || len(got) != 4 || want.samples != 1 || first.samples+second.samples != 4 {
				t.Fatalf("%d and %d steps, %d and %d grids", len(want.records), len(got), want.samples, first.samples+second.samples)
			}
			for i, r := range want.records {
				if got[i].Step != r.Step || got[i].Epoch != r.Epoch || got[i].Samples != r.Samples {
					t.Errorf("step %d: got step %d, epoch %d, %d samples", i, got[i].Step, got[i].Epoch, got[i].Samples)
				}
				for j := range r.Values {
					if got[i].Values[j] != r.Values[j] {
						t.Errorf("step %d: %s is %v after a resume, want %v", i, r.Names[j], got[i].Values[j], r.Values[j])
					}
				}
			}
		})
	}
}

// fed is a model that notes what its own inputs are filled for.
type fed struct {
	algo.Model
	seen *[]string
}

func (f fed) Feeder(p exec.Program) func(int64, int) {
	feed := f.Model.Feeder(p)
	return func(step int64, epoch int) {
		*f.seen = append(*f.seen, fmt.Sprintf("step %d of epoch %d", step, epoch))
		feed(step, epoch)
	}
}

// A model's own inputs, such as its learning rates, are those of the step and of its epoch,
// after a resume too.
func TestInputsOfEpochs(t *testing.T) {
	var seen []string
	j := job{world: 1, config: loop.Config{Batch: 32, Steps: 2, Seed: 1, CkptDir: t.TempDir()}} // of 64 pictures
	j.parts = func(_ int, p *loop.Parts) { p.Model = fed{p.Model, &seen} }
	for range 2 {
		if _, errs := j.run(t); errs[0] != nil {
			t.Fatal(errs[0])
		}
		j.config.Steps, j.config.Resume = 5, true
	}
	want := []string{"step 0 of epoch 0", "step 1 of epoch 0", "step 2 of epoch 1", "step 3 of epoch 1", "step 4 of epoch 2"}
	if !slices.Equal(seen, want) {
		t.Errorf("inputs are filled for %q, want %q", seen, want)
	}
}
