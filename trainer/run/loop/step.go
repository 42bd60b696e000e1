package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// A device can be given the next step while it computes this one. So as many
// steps are queued as the program's Depth allows: with two, step n+1 is launched,
// and then step n is waited for and its report read. Whatever looks at variables
// or at how far the run is (checkpoints, comparisons, grids, traces, the end) first
// waits for all that is queued, after steps that all ranks know. With a depth of 1
// nothing is queued after any step.
//
// A rank that wants to stop says so in the step's report. Where steps are queued
// that is read too late; there the ranks also agree on it over the loop's own
// Comm, while the device computes. So they stop after the same step whatever the
// depth. Samples that are left out because of it say so to all ranks, too, which then
// stop after the step that is done.

// flight is a step that is launched and not done.
type flight struct {
	step, epoch int64
	begin, fed  time.Time
	data        time.Duration // waiting for the loader
}

// takeStep launches a step, waits for those that must be done before the next one is
// launched, and says whether to stop.
func (t *Trainer) takeStep(ctx context.Context) (stop bool, err error) {
	step := t.next + int64(len(t.queue))
	if err := t.launch(ctx, step); err != nil {
		return false, fmt.Errorf("step %d: %w", step, err)
	}
	if stop, err = t.stopping(ctx); err != nil {
		return false, fmt.Errorf("step %d: %w", step, err)
	}
	for len(t.queue) == cap(t.queue) || len(t.queue) > 0 && (stop || t.pauses(step+1)) {
		reported, err := t.collect(ctx)
		if err != nil {
			return false, err
		}
		stop = stop || reported
	}
	return stop, nil
}

// launch loads and launches a step.
func (t *Trainer) launch(ctx context.Context, step int64) error {
	begin := time.Now()
	t.listen(step, begin)
	t.tell(step, "load")
	batch, err := t.parts.Loader.Next(ctx)
	if err != nil {
		return err
	}
	if err := t.lookAhead(ctx, step); err != nil {
		return err
	}
	loaded := t.span("load", begin)
	if err := t.use(ctx, step, batch.Length); err != nil {
		return err
	}
	t.feed(step, batch)
	fed := t.span("feed", loaded)
	t.tell(step, "step")
	if err := t.step.prepare(ctx); err != nil {
		return err
	}
	if err := t.step.Launch(ctx); err != nil {
		return err
	}
	t.queue = append(t.queue, flight{step, batch.Epoch, begin, fed, loaded.Sub(begin)})
	return nil
}

// feed sets the inputs of a step, and of what runs before it.
func (t *Trainer) feed(step int64, batch *loader.Batch) {
	t.fill(t.step.Program, step, batch)
	for i := range t.step.stages {
		t.fill(t.step.stages[i].Program, step, batch)
	}
	t.step.feedOwn(step, int(batch.Epoch))
	t.notice[0] = 0
	if t.asked() || t.unread != nil {
		t.notice[0] = 1
	}
	t.step.Input(algo.InputStop).F32()[0] = float32(t.notice[0])
}

// asked says whether this rank has been asked to stop.
func (t *Trainer) asked() bool {
	select {
	case <-t.parts.Stop:
		return true
	default:
		return false
	}
}

// fill sets the inputs of a program that are samples, and the name of its draws.
func (t *Trainer) fill(p exec.Program, step int64, batch *loader.Batch) {
	if in := p.Input(algo.InputImages); in != nil {
		copy(in.F32(), batch.X)
	}
	if in := p.Input(algo.InputTokens); in != nil {
		copy(in.I32(), batch.Tokens)
	}
	if in := p.Input(algo.InputLengths); in != nil {
		copy(in.I32(), batch.Lengths)
	}
	if key := p.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(t.cfg.Seed), step, int64(batch.First)})
	}
}

// stopping says whether a rank has asked to stop after the step launched last, if
// steps are queued; if not, its report will say so. All ranks call it.
func (t *Trainer) stopping(ctx context.Context) (bool, error) {
	if cap(t.queue) == 1 {
		return false, nil
	}
	if t.parts.Comm != nil {
		req := collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(t.notice[:]), Label: "stop?"}
		if err := collective.Do(ctx, t.parts.Comm, req); err != nil {
			return false, err
		}
	}
	return t.notice[0] != 0, nil
}

// pauses says whether all steps must be done before the one of that number is
// launched. It is the same on all ranks.
func (t *Trainer) pauses(step int64) bool {
	p := t.cfg.Profile
	return step >= t.cfg.Steps || step == t.until || p.File != "" && (step == p.Step || step == p.Step+1) ||
		every(t.cfg.CheckEvery, step) || every(t.cfg.CkptEvery, step) || every(t.cfg.SampleEvery, step)
}

// collect waits for the oldest step, reports it and does what is due after it.
func (t *Trainer) collect(ctx context.Context) (stop bool, err error) {
	f := t.queue[0]
	t.queue = append(t.queue[:0], t.queue[1:]...)
	if err := t.step.Wait(ctx); err != nil {
		return false, fmt.Errorf("step %d: %w", f.step, err)
	}
	done := t.span("run", f.fed)
	begin := f.begin
	if t.ended.After(begin) { // it was queued behind another
		begin = t.ended
	}
	took, waited := done.Sub(begin), t.step.Stats().CommWait
	r := Record{
		Step: f.step, Epoch: f.epoch, Samples: (f.step + 1) * int64(t.cfg.Batch),
		Names: t.names, StepTime: took, DataTime: min(f.data, took), CommTime: waited - t.step.waited,
	}
	t.ended, t.step.waited = done, waited
	if stop, err = t.account(&r); err != nil {
		t.abandon(ctx, err)
		return false, err
	}
	t.span("report", done)
	t.span("step", f.begin)
	t.next++
	if err := t.profiled(ctx); err != nil {
		return false, err
	}
	err = t.due(ctx)
	return stop || t.undrawn, err
}

// account reads the report of the step that has run into r, shows it, and says whether a rank
// has asked to stop.
func (t *Trainer) account(r *Record) (stop bool, err error) {
	out := t.step.Output(algo.OutputReport)
	r.Values = t.values[:0]
	for i, name := range r.Names {
		v := out.At(i)
		r.Values = append(r.Values, v)
		stop = stop || name == algo.ReportStop && v > 0
	}
	t.values = r.Values
	if err := t.diverged(r); err != nil {
		return false, err
	}
	if t.parts.Observer == nil {
		return stop, nil
	}
	return stop, t.parts.Observer.Stepped(*r)
}

// diverged is ErrDiverged, and why, if a step has: by the model's own judgement, which knows
// the cause, or by a number that is not finite.
func (t *Trainer) diverged(r *Record) error {
	if d, ok := t.parts.Model.(algo.Diagnosing); ok {
		if what := d.Diagnose(r.Values); what != "" {
			return fmt.Errorf("%w: at step %d %s", ErrDiverged, r.Step, what)
		}
	}
	for i, v := range r.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: %s is %v at step %d: %s", ErrDiverged, r.Names[i], v, r.Step, remedy(r.Step))
		}
	}
	return nil
}

// remedy says what to do about numbers that are not finite at a step: the first is
// of weights that no learning rate has moved, but for those of a level within it.
func remedy(step int64) string {
	if step == 0 {
		return "in the first step, so some setting of the losses, such as a noise level or a temperature, is too large or too small, or the learning rate of a lower level"
	}
	return "lower the learning rates in a new run"
}

// abandon waits for what is queued behind a step that diverged, and for all ranks to
// have seen that it did: who leaves ends the others' work, and one that has the report
// still to read would not know why. How that ends says nothing more.
func (t *Trainer) abandon(ctx context.Context, cause error) {
	if !errors.Is(cause, ErrDiverged) {
		return
	}
	for range t.queue {
		if t.step.Wait(ctx) != nil {
			return
		}
	}
	if t.parts.Comm != nil {
		_ = collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.Barrier, Label: "diverged"})
	}
}

// due does what is due after step t.next−1. The last checkpoint comes before the last
// samples, which may take long, or fail: a resumed run draws those again (see Run). So
// does one before many samples.
func (t *Trainer) due(ctx context.Context) error {
	last := t.next == t.cfg.Steps
	if last || every(t.cfg.CheckEvery, t.next) {
		if err := t.checkReplicas(ctx); err != nil {
			return err
		}
	}
	if last || every(t.cfg.CkptEvery, t.next) || t.savesFirst() {
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	if last || every(t.cfg.SampleEvery, t.next) {
		return t.showSamples(ctx)
	}
	return nil
}

// every says whether what is done every n steps is due after done steps.
func every(n, done int64) bool { return n > 0 && done%n == 0 }
