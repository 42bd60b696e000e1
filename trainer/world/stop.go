package world

import (
	"context"
	"errors"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/launch/cliflag"
)

// Unstopped is ctx until the job is asked to stop: for programs that have nothing to
// keep of what is half done, and say in rest what there is of it, as in "nothing was
// measured". Fail then makes a cliflag.Stopped of all that follows, and fails nobody. done
// releases the context.
func (w *World) Unstopped(ctx context.Context, rest string) (_ context.Context, done func()) {
	w.rest = rest
	return untilStopped(ctx, w.StopRequested(), w.asked)
}

// asked is why a program ends that was asked to stop.
func (w *World) asked() error { return &cliflag.Stopped{Signal: w.StopSignal(), Rest: w.rest} }

func untilStopped(ctx context.Context, stop <-chan struct{}, why func() error) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stop:
			cancel(why())
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); wg.Wait() }
}

// stopped is the reason why this rank ends with err if it is that it was asked to stop,
// else nil. Other ranks may have heard of that before, and be gone.
func (w *World) stopped(err error) error {
	if w.rest == "" {
		return nil
	}
	if lost(err) {
		select {
		case <-w.StopRequested():
		case <-w.Done():
		case <-time.After(symptomWait):
		}
	}
	select {
	case <-w.StopRequested():
		return w.asked()
	default:
		return nil
	}
}

// lost says that err is what befell another rank. A device, for one, ends the group itself
// when it fails, and this rank may hear of that in another collective.
func lost(err error) bool {
	return (errors.Is(err, collective.ErrPeerLost) || errors.Is(err, collective.ErrAborted)) && !errors.Is(err, collective.ErrOwnAbort)
}
