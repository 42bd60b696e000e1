package world

import (
	"context"
	"errors"
	"testing"
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
