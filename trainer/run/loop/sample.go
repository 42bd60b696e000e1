package loop

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
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
	t.sample, err = chain.New(t.parts.Backend, t.vars, plan)
	return err
}

// showSamples draws the grid's samples on rank 0, always with the same random numbers.
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
	t.tell(t.next, "sample")
	err := t.drawSamples(ctx)
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

// drawSamples draws and shows them, on the rank that prepared to. It gives up between
// two transitions if this rank is asked to stop: a launcher kills after a few seconds
// who has not stopped, and a chain may take minutes. The first is as quick as a step,
// and may be all.
func (t *Trainer) drawSamples(ctx context.Context) error {
	if t.sample == nil {
		return nil
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	samples, err := t.sample.Run(ctx, t.cfg.Seed, func(done, _ int) {
		if done > 0 && t.hears() {
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
