package main

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
)

// TestRecordingAllocatesNothing records steps with the lines of metrics.jsonl
// and the event file.
func TestRecordingAllocatesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	o, fs, err := parse([]string{"--out", out, "--log-every", "2", "--steps", "1000000"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Started(0); err != nil {
		t.Fatal(err)
	}
	rec := loop.Record{Names: algo.Names(o.model.Model().Report()), StepTime: time.Millisecond}
	rec.Values = make([]float64, len(rec.Names))
	const steps = 200
	n := testing.AllocsPerRun(steps, func() {
		for i := range rec.Values {
			rec.Values[i] += 0.1
		}
		if err := r.Stepped(rec); err != nil {
			t.Fatal(err)
		}
		rec.Step++
	})
	if n != 0 {
		t.Errorf("%v allocations a step, want none", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := rundir.ReadMetrics(filepath.Join(out, "metrics.jsonl"))
	if err != nil || len(lines) != (steps+2)/2 { // AllocsPerRun warms up once
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if l := lines[50]; l.Step != 100 || len(l.Losses) != len(rec.Names)-1 || l.Losses["upper"] < 10 || l.Losses["upper"] > 10.2 {
		t.Errorf("got %+v", l)
	}
}
