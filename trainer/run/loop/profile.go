package loop

import (
	"context"
	"fmt"
	"io"
	"time"

	"ebtrain/data/atomicfile"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/run/trace"
)

// Profile asks for a trace of one step.
type Profile struct {
	File string // written by rank 0, with the spans of all ranks; "" for no trace
	Step int64  // the step that is traced, from 0
}

// listen asks for the events of step, which begins now, if it is to be traced.
func (t *Trainer) listen(step int64, now time.Time) {
	if t.trace || t.cfg.Profile.File != "" && t.cfg.Profile.Step == step {
		t.recorder = trace.NewRecorder(now)
	}
}

// events is where the run under way tells its events, nil if nobody listens.
func (t *Trainer) events() func(exec.Event) {
	if t.recorder == nil {
		return nil
	}
	return t.recorder.Op
}

// span ends a part of the step that began at from, and returns when.
func (t *Trainer) span(name string, from time.Time) time.Time {
	now := time.Now()
	if t.recorder != nil {
		t.recorder.Loop(name, from, now)
	}
	return now
}

// profiled writes the trace of the step that has run, if it was traced. All
// ranks call it.
func (t *Trainer) profiled(ctx context.Context) error {
	if t.recorder == nil {
		return nil
	}
	spans := t.recorder.Spans()
	t.recorder = nil
	t.tell(t.next, "gather the trace")
	ranks, err := trace.Gather(ctx, t.parts.Comm, spans)
	if t.trace {
		t.trace, t.spans = false, ranks
		return err
	}
	if err != nil || t.rank() != 0 {
		return err
	}
	err = atomicfile.Write(t.cfg.Profile.File, func(w io.Writer) error { return trace.Write(w, ranks) })
	if err != nil {
		return fmt.Errorf("trace of step %d: %w", t.cfg.Profile.Step, err)
	}
	t.parts.Log.Info("trace written", "step", t.cfg.Profile.Step, "file", t.cfg.Profile.File)
	return nil
}
