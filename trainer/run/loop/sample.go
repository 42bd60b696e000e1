package loop

import (
	"context"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/model/nn"
)

// prepareSamples compiles the sampler on rank 0.
func (t *Trainer) prepareSamples() error {
	if t.cfg.SampleCount == 0 || t.rank() != 0 || t.parts.Observer == nil {
		return nil
	}
	g, err := t.parts.Algorithm.Sample(nn.BatchStats, t.cfg.SampleCount)
	if err != nil {
		return err
	}
	t.sample, err = t.parts.Backend.Compile(g, exec.Options{Name: "sample", Vars: t.vars})
	return err
}

// showSamples makes the grid's pictures, always from the same latents. The
// other ranks go on and wait at their next collective.
func (t *Trainer) showSamples(ctx context.Context) error {
	if t.sample == nil {
		return nil
	}
	t.tell(t.next, "sample")
	fill(t.sample, InputKey, int64(t.cfg.Seed), 0, 0)
	if err := exec.Run(ctx, t.sample); err != nil {
		return fmt.Errorf("samples after step %d: %w", t.next, err)
	}
	return t.parts.Observer.Sampled(t.next, t.sample.Output(OutputSamples))
}
