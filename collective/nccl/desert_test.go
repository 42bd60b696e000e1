//go:build cgo

package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
)

// TestDeserted: who waits in an enqueued collective for a rank that has closed in good order
// is told soon, and not when its time is over. Who is past its last collective and still
// computes, which takes as long, is left alone.
func TestDeserted(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("DEVICES", "4")
	waiting, errs := attemptOn(t, m, 2, func(r int) int { return r }, same(options()))
	computing, moreErrs := attemptOn(t, m, 2, func(r int) int { return 2 + r }, same(options()))
	if err := errors.Join(append(errs, moreErrs...)...); err != nil {
		t.Fatal(err)
	}
	together(t, append(waiting, computing...), func(x *member) error {
		mem, err := x.Alloc(4096)
		if err != nil {
			return err
		}
		req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32), Label: "gradient"}
		if err := x.Agree(t.Context(), []collective.Request{req}); err != nil {
			return err
		}
		s, err := x.dev.NewStream("program", 0)
		if err != nil {
			return err
		}
		over, err := x.dev.NewEvent(false)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		run := func(after time.Duration) error {
			if err := x.Enqueue(s, req); err != nil {
				return err
			}
			return errors.Join(s.HostFunc(func() { time.Sleep(after) }), s.Record(over), x.Await(ctx, over))
		}
		free := func() error { return errors.Join(s.Sync(context.Background()), over.Close(), s.Close()) }
		switch {
		case x.Rank() == 1: // in good order
			return errors.Join(run(0), free(), x.Close())
		case x == computing[0]:
			return errors.Join(run(4*time.Second), free(), x.Close())
		}
		if err := run(0); err != nil {
			return err
		}
		if err := run(0); !errors.Is(err, collective.ErrPeerLost) || !strings.Contains(err.Error(), `rank 1: it has closed its communicator: all-reduce sum f32[1024] "gradient" `) {
			return fmt.Errorf("got %w, want an error that names rank 1 and the collective", err)
		}
		return errors.Join(free(), x.Close())
	})
}
