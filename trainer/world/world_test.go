package world

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestWorldOfOne has no launcher: a failure is its own, and nobody is waited
// for.
func TestWorldOfOne(t *testing.T) {
	w, err := Join(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Connect(t.Context(), slog.New(slog.DiscardHandler)); err != nil || w.Comm != nil {
		t.Errorf("a world of one has the comm %v, error %v", w.Comm, err)
	}
	ctx, cancel := w.Context(context.Background())
	failure := errors.New("no luck")
	if got := w.Fail(failure); got != failure {
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
