package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// prepareSamples compiles the sampler on rank 0, if the model has one.
func (t *Trainer) prepareSamples() error {
	sampler, ok := t.parts.Model.(algo.Sampler)
	if !ok || t.cfg.SampleCount == 0 || t.rank() != 0 || t.parts.Observer == nil {
		return nil
	}
	plan, err := sampler.Sample(nn.BatchStats, t.cfg.SampleCount)
	if err != nil {
		return err
	}
	t.shown = t.vars
	if t.cfg.Average != 0 {
		t.shown = t.parts.Backend.NewVars()
		if err := t.showAverages(nil); err != nil { // the first values, for their types
			return err
		}
	}
	if t.sample, err = chain.New(t.parts.Backend, t.shown, plan, t.cfg.MaxBytes); err != nil {
		return fmt.Errorf("%w: %w", ErrSampler, err)
	}
	return nil
}

// ErrSampler is that the program of the grids' samples could not be compiled.
var ErrSampler = errors.New("the sampler")

// showSamples draws the grid's samples on rank 0, always with the same random numbers, from
// the averages of weights where these are kept.
// The other ranks wait for it on the loop's own Comm, as long as it takes: what
// programs reduce over, or how it ends, may have a limit, and drawing has none. If rank
// 0 has left the samples out, undrawn says so on all ranks.
func (t *Trainer) showSamples(ctx context.Context) error {
	if _, ok := t.parts.Model.(algo.Sampler); !ok || t.cfg.SampleCount == 0 {
		return nil
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	averages, err := t.gather(ctx, t.sample != nil, nn.Average)
	if err != nil {
		return err
	}
	t.tell(t.next, "sample")
	err = t.drawSamples(ctx, averages)
	t.undrawn = errors.Is(err, errUndrawn)
	if err != nil && !t.undrawn {
		if t.parts.Comm != nil {
			t.parts.Comm.Abort(err)
		}
		return err
	}
	if t.parts.Comm == nil {
		return nil
	}
	undrawn := []uint8{0}
	if t.undrawn {
		undrawn[0] = 1
	}
	req := collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(undrawn), Label: "samples"}
	err = collective.Do(ctx, t.parts.Comm, req)
	t.undrawn = undrawn[0] != 0
	return err
}

// errUndrawn means that samples were left out.
var errUndrawn = errors.New("asked to stop")

// patience is how long samples may still take when this rank is asked to stop: a launcher
// kills after some seconds who has not stopped.
const patience = 2 * time.Second

// drawSamples draws and shows them, on the rank that prepared to. It gives up between
// two transitions if this rank is asked to stop, and within one when that takes longer
// than patience: a chain may take minutes, and so may one transition of many samples.
// One is mostly as quick as a step, and may be all.
func (t *Trainer) drawSamples(ctx context.Context, averages map[string]*exec.Tensor) error {
	if t.sample == nil {
		return nil
	}
	if t.cfg.Average != 0 {
		if err := t.showAverages(averages); err != nil {
			return err
		}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stopped := t.afterStop(patience, func() { giveUp(errUndrawn) })
	defer stopped()
	samples, err := t.sample.Run(ctx, t.cfg.Seed, func(done, _ int) {
		if done > 0 && t.asked() {
			giveUp(errUndrawn)
		}
	})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errUndrawn):
		t.parts.Log.Warn("asked to stop, so these samples are left out", "after_step", t.next)
		return errUndrawn
	case err != nil:
		return fmt.Errorf("samples after step %d: %w", t.next, err)
	}
	return t.parts.Observer.Sampled(t.next, samples)
}

// afterStop calls f so long after this rank is asked to stop, or never once the function
// that it returns was called.
func (t *Trainer) afterStop(d time.Duration, f func()) (end func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-t.parts.Stop:
		case <-done:
			return
		}
		select {
		case <-time.After(d):
			f()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// manySamples may take longer to draw, or their picture to write, than a launcher waits
// for who is asked to stop.
const manySamples = 1024

// savesFirst says that a checkpoint comes before the samples that are due, on all ranks:
// whoever is killed while they are drawn loses no step.
func (t *Trainer) savesFirst() bool {
	_, ok := t.parts.Model.(algo.Sampler)
	return ok && t.cfg.SampleCount > manySamples && every(t.cfg.SampleEvery, t.next)
}
