package loop

import (
	"context"
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
// programs reduce over, or how it ends, may have a limit, and drawing has none.
func (t *Trainer) showSamples(ctx context.Context) error {
	if _, ok := t.parts.Model.(algo.Sampler); !ok || t.cfg.SampleCount == 0 {
		return nil
	}
	t.tell(t.next, "sample")
	if err := t.drawSamples(ctx); err != nil {
		if t.parts.Comm != nil {
			t.parts.Comm.Abort(err)
		}
		return err
	}
	if t.parts.Comm == nil {
		return nil
	}
	return collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.Barrier, Label: "samples"})
}

// drawSamples draws and shows them, on the rank that prepared to.
func (t *Trainer) drawSamples(ctx context.Context) error {
	if t.sample == nil {
		return nil
	}
	samples, err := t.sample.Run(ctx, t.cfg.Seed, nil)
	if err != nil {
		return fmt.Errorf("samples after step %d: %w", t.next, err)
	}
	return t.parts.Observer.Sampled(t.next, samples)
}
