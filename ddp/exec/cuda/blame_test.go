package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
)

// TestFailedBehind: a rank whose launch fails while it waits for the run before is told of
// that, and not of the end of its group, which is what the other rank is told.
func TestFailedBehind(t *testing.T) {
	t.Setenv(cudatest.Prefix+"DELAY", "2000")
	for _, fault := range []string{"cuGraphLaunch=3=700", "cuGraphLaunch=4=700", "cuGraphLaunch=7=700"} { // of either rank
		t.Run(fault, func(t *testing.T) {
			var errs [2]error
			onTwoGPUs(t, func(r int, below collective.Comm) error {
				errs[r] = fullQueue(t, Config{Plain: true, Ordinal: r}, below)
				return nil
			}, fault)
			ill, well := errs[0], errs[1]
			if errors.Is(ill, collective.ErrAborted) {
				ill, well = well, ill
			}
			if ill == nil || !strings.Contains(ill.Error(), "cuGraphLaunch") || errors.Is(ill, collective.ErrAborted) || !errors.Is(well, collective.ErrAborted) {
				t.Errorf("want one rank's failed launch, and the end of the other's group, got\n%v\n%v", errs[0], errs[1])
			}
		})
	}
}

// fullQueue runs a program that reduces with as many runs queued as there may be.
func fullQueue(t *testing.T, c Config, below collective.Comm) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, done, err := sharedOver(ctx, t, c, below, exec.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = done() }() // on a lost device hundreds of calls fail
	for n := range 20 {
		if err := p.Launch(ctx); err != nil {
			return fmt.Errorf("run %d is launched: %w", n, err)
		}
		if n+1 < depth {
			continue
		}
		if err := p.Wait(ctx); err != nil {
			return fmt.Errorf("run %d: %w", n+1-depth, err)
		}
	}
	return nil
}

// TestEndedIsNotReplayed: a run that is launched when its group has ended is not replayed, as
// what it would launch is NCCL's, which is being aborted.
func TestEndedIsNotReplayed(t *testing.T) {
	onTwoGPUs(t, func(r int, below collective.Comm) (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, done, err := sharedOver(ctx, t, Config{Plain: true, Ordinal: r}, below, exec.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		for range 2 + 2*depth { // those of each slot are replayed
			if err := errors.Join(p.Launch(ctx), p.Wait(ctx)); err != nil {
				return err
			}
		}
		if err := collective.Do(ctx, below, collective.Request{Kind: collective.Barrier}); err != nil {
			return err
		}
		before := p.replays
		p.comm.Abort(errors.New("enough"))
		if err := errors.Join(p.Launch(ctx), p.Wait(ctx)); !errors.Is(err, collective.ErrAborted) {
			return fmt.Errorf("got %w, want the end of the group", err)
		}
		if before == 0 || p.replays != before {
			return fmt.Errorf("%d runs were replayed before the end of the group and %d after it", before, p.replays-before)
		}
		return nil
	})
}
