package loop

import (
	"context"
	"fmt"

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

// showSamples draws the grid's samples, always with the same random numbers. The
// other ranks go on and wait at their next collective.
func (t *Trainer) showSamples(ctx context.Context) error {
	if t.sample == nil {
		return nil
	}
	t.tell(t.next, "sample")
	samples, err := t.sample.Run(ctx, t.cfg.Seed, nil)
	if err != nil {
		return fmt.Errorf("samples after step %d: %w", t.next, err)
	}
	return t.parts.Observer.Sampled(t.next, samples)
}
