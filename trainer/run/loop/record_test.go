package loop_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// What is told and kept of a step: how far the run is in samples and epochs of 64
// pictures, and how long this step waited, not those before it. Rank 1 is late for the
// first step.
func TestRecords(t *testing.T) {
	const batch, steps = 32, 3
	j := job{world: 2, config: loop.Config{Batch: batch, Steps: steps, Seed: 1, CkptDir: t.TempDir()}}
	j.doing = func(rank int, step int64, what string) {
		if rank == 1 && step == 0 && what == "load" {
			time.Sleep(200 * time.Millisecond)
		}
	}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	for i, r := range j.seen.records {
		if n := int64(i); r.Step != n || r.Samples != (n+1)*batch || r.Epoch != n*batch/64 {
			t.Errorf("record %d is of step %d, epoch %d, %d samples", i, r.Step, r.Epoch, r.Samples)
		}
		if r.CommTime > r.StepTime {
			t.Errorf("step %d waited %v for others of %v", i, r.CommTime, r.StepTime)
		}
	}
	_, s, _, err := ckpt.ReadLatest(j.config.CkptDir, slog.New(slog.DiscardHandler))
	if err != nil || s.Step != steps || s.Samples != steps*batch || s.Epoch != 1 || s.Seed != 1 || s.World != 2 {
		t.Errorf("the checkpoint is of %+v, %v", s, err)
	}
}
