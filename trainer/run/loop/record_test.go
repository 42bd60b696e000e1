package loop_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"ebtrain/data"
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

// gated is data of which one block comes once a channel is closed.
type gated struct {
	data.Source
	block int
	open  <-chan struct{}
}

func (g gated) ReadBlock(i int, dst *data.Block) error {
	if i == g.block {
		<-g.open
	}
	return g.Source.ReadBlock(i, dst)
}

// A step tells how long it waited for data, and takes nothing else for that. The data of
// step 2, for which step 1 looks ahead, come late, and so do the ends of all steps.
func TestDataTime(t *testing.T) {
	const late1, late2 = 200 * time.Millisecond, 50 * time.Millisecond
	open := make(chan struct{})
	j := job{world: 1, config: loop.Config{Batch: damagedBlock, Steps: 4, Seed: 1}, load: inOrder}
	j.data = func(_ int, s data.Source) data.Source { return gated{damaged{s, nil}, 2, open} }
	j.doing = func(_ int, step int64, what string) {
		if step == 1 && what == "load" {
			time.AfterFunc(late1, func() { close(open) })
		}
	}
	j.parts = func(_ int, p *loop.Parts) {
		p.Backend = late{p.Backend, func() error { time.Sleep(late2); return nil }, func() {}}
	}
	if _, errs := j.run(t); errs[0] != nil {
		t.Fatal(errs[0])
	}
	for _, r := range j.seen.records {
		if r.Step == 1 && r.DataTime < late1 || r.DataTime > r.StepTime-late2 {
			t.Errorf("step %d took %v, of it %v for data", r.Step, r.StepTime, r.DataTime)
		}
	}
}
