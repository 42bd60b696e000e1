package world

import (
	"context"
	"errors"
	"testing"
)

// A rank that is asked to stop ends, and says why.
func TestUntilStopped(t *testing.T) {
	stop := make(chan struct{})
	ctx, done := untilStopped(t.Context(), stop)
	defer done()
	if ctx.Err() != nil {
		t.Fatal("ended before it was asked to")
	}
	close(stop)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("cause %v, want %v", err, ErrStopped)
	}
	ctx, done = untilStopped(t.Context(), nil)
	done() // waits for nobody
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cause %v, want %v", err, context.Canceled)
	}
}
