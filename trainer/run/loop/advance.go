package loop

import (
	"context"
	"errors"

	"ebtrain/trainer/run/trace"
)

// A program that measures steps runs some, waits, and runs more. So a Trainer can be
// asked for a few steps at a time in place of Run: what it does in them is what Run
// does.

// Advance runs n steps more and returns when they are done; all ranks call it. Config's
// Steps must be more than all of them together. It is used instead of Run, and nothing
// is done that ends a run.
func (t *Trainer) Advance(ctx context.Context, n int64) error {
	if t.until == 0 {
		if err := t.firstBatch(ctx); err != nil {
			return err
		}
	}
	t.until = t.next + n
	for t.next < t.until {
		stop, err := t.takeStep(ctx)
		switch {
		case err != nil:
			return err
		case stop:
			return errors.Join(errors.New("a rank has asked to stop"), t.unreadable(ctx))
		}
	}
	return nil
}

// Trace is Advance by one step, with what every rank did in it, by rank. Config.Traceable
// must be set.
func (t *Trainer) Trace(ctx context.Context) ([][]trace.Span, error) {
	t.trace = true
	if err := t.Advance(ctx, 1); err != nil {
		return nil, err
	}
	spans := t.spans
	t.spans = nil
	return spans, nil
}

// Compare makes sure that all ranks have the same weights, bit for bit.
func (t *Trainer) Compare(ctx context.Context) error { return t.checkReplicas(ctx) }
