package world

import (
	"context"
	"errors"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// A rank that is asked to stop ends, and says why.
func TestUntilStopped(t *testing.T) {
	stop, asked := make(chan struct{}), errors.New("asked to stop")
	ctx, done := untilStopped(t.Context(), stop, func() error { return asked })
	defer done()
	if ctx.Err() != nil {
		t.Fatal("ended before it was asked to")
	}
	close(stop)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, asked) {
		t.Errorf("cause %v, want %v", err, asked)
	}
	ctx, done = untilStopped(t.Context(), nil, nil)
	done() // waits for nobody
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cause %v, want %v", err, context.Canceled)
	}
}

// Who ends the group says why at once, wherever it hears of that itself; what the others hear
// is not theirs to say.
func TestOwnAbortIsNotLost(t *testing.T) {
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range comms {
		defer func() { _ = c.Close() }()
	}
	comms[1].Abort(errors.New("its device is lost"))
	for r, c := range comms {
		err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier})
		if !errors.Is(err, collective.ErrAborted) || lost(err) != (r == 0) {
			t.Errorf("rank %d: %v, lost %v", r, err, lost(err))
		}
	}
}
