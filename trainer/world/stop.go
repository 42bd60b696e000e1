package world

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped is why a context of Unstopped has ended when the job was asked to stop.
var ErrStopped = errors.New("asked to stop before there was a result")

// Unstopped is ctx until the job is asked to stop: for programs that have nothing to
// keep of what is half done. done releases it.
func (w *World) Unstopped(ctx context.Context) (_ context.Context, done func()) {
	return untilStopped(ctx, w.StopRequested())
}

func untilStopped(ctx context.Context, stop <-chan struct{}) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stop:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); wg.Wait() }
}
