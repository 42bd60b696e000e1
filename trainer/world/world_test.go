package world

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
)

// TestWorldOfOne has no launcher: a failure is its own, and nobody is waited
// for.
func TestWorldOfOne(t *testing.T) {
	w, err := Join(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Processors().Count(); n != runtime.NumCPU() || w.Sharing() != 1 || len(w.Machines()) != 1 {
		t.Errorf("%d processors, of which %d ranks share its own", n, w.Sharing())
	}
	if err := w.Connect(t.Context(), slog.New(slog.DiscardHandler)); err != nil || w.Comm != nil {
		t.Errorf("a world of one has the comm %v, error %v", w.Comm, err)
	}
	ctx, cancel := w.Context(context.Background())
	failure := errors.New("no luck")
	if got := w.Fail(failure); !errors.Is(got, failure) || got.Error() != failure.Error() {
		t.Errorf("got %v, want the failure as it was", got)
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A rank that could not connect is named by all that take part, those beyond its group too.
func TestPartThatFails(t *testing.T) {
	errs := ddptest.Ranks(4, func(rank int, comm collective.Comm) error {
		one, err := Join(t.Context(), nil) // its rank is 0, as none that fails has
		if err != nil {
			return err
		}
		w := &World{Group: one.Group, Comm: comm}
		state, mine := byte(connected), []byte(nil)
		if rank == 2 {
			state, mine = failed, []byte("no port")
		}
		_, _, err = w.swapAmong(t.Context(), part{1, 3}, "a group", state, mine)
		return errors.Join(err, one.Close())
	})
	for r, err := range errs {
		if err == nil || err.Error() != "rank 2: no port" {
			t.Errorf("rank %d: %v, want that rank 2 has no port", r, err)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	for _, environ := range []string{"RANK=0", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "EBTRAIN_CONTROL_FD=3"} {
		if w, err := Join(t.Context(), strings.Fields(environ)); err == nil {
			t.Errorf("%s: accepted", environ)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
