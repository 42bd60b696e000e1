package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestInterrupted: a trial that was interrupted is not in the table, and no failure.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &workshop{ctx: ctx, options: options{times: 2}}
	rep := &report{o: w.options}
	begun := 0
	w.tryAll([]trial{
		{name: "first", what: "goes well", do: func(_ *workshop, r *result) (*job, error) {
			r.measure("all of it", time.Second, 0)
			return nil, nil
		}},
		{name: "second", what: "is interrupted", do: func(w *workshop, r *result) (*job, error) {
			if begun++; begun == 2 {
				cancel(errors.New("stopped by SIGTEST"))
			}
			return nil, context.Cause(w.ctx)
		}},
		{name: "third", what: "is not begun", do: func(*workshop, *result) (*job, error) {
			t.Error("a trial is begun after the interruption")
			return nil, nil
		}},
	}, rep, io.Discard)
	if bad := rep.bad(); bad != nil {
		t.Errorf("failures: %v", bad)
	}
	text := rep.String()
	for _, want := range []string{
		"| first: goes well | all of it | 2 |", "| second: is interrupted |  | 1 |", "| 1 of 1 |",
		"\nInterrupted: time 2 of second, and what was to follow, are not in the table (stopped by SIGTEST).\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Not as it must be") {
		t.Error(text)
	}
}

// TestWaitsEnd: who waits for ranks or launchers to end stops when chaos is interrupted, and
// when the job's patience is over.
func TestWaitsEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by SIGTEST")
	cancel(stopped)
	for want, j := range map[error]*job{
		stopped: {w: &workshop{ctx: ctx}, patience: time.Hour},
		nil:     {w: &workshop{ctx: t.Context()}, patience: time.Millisecond},
	} {
		for range 2 {
			j.nodes = append(j.nodes, &node{out: &tail{}, done: make(chan struct{})}) // never closed
		}
		if _, err := j.ends(j.nodes, time.Now()); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("launchers, patience %v: %v", j.patience, err)
		}
		if _, err := j.gone([]rank{{pid: os.Getpid()}}, time.Now()); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("ranks, patience %v: %v", j.patience, err)
		}
	}
}

// TestPause: so does who lets some time pass.
func TestPause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := (&workshop{ctx: ctx}).pause(time.Millisecond); err != nil {
		t.Error(err)
	}
	stopped := errors.New("stopped by SIGTEST")
	cancel(stopped)
	if err := (&workshop{ctx: ctx}).pause(time.Hour); !errors.Is(err, stopped) {
		t.Errorf("an hour: %v", err)
	}
}
