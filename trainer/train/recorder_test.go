package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
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
	o, fs, err := parse(nil, []string{"--out", out, "--log-every", "2", "--steps", "1000000"}, io.Discard)
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

// The last word of a run that is stopped comes after its last step.
func TestTheEndComesLast(t *testing.T) {
	o, fs, err := parse(nil, []string{"--out", filepath.Join(t.TempDir(), "run"), "--print-every", "1000", "--steps", "1000"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", &text)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Started(0); err != nil {
		t.Fatal(err)
	}
	rec := loop.Record{Names: algo.Names(o.model.Model().Report()), StepTime: time.Millisecond}
	rec.Values = make([]float64, len(rec.Names))
	for ; rec.Step < 3; rec.Step++ {
		if err := r.Stepped(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Ended(rec.Step); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if n := len(lines); n < 2 || !strings.HasPrefix(lines[n-2], "step 3/1000 ") || !strings.HasPrefix(lines[n-1], "3 steps done; ") {
		t.Errorf("it says\n%s", &text)
	}
}

// How far the bits hold is said in words that a reader can count.
func TestFewShards(t *testing.T) {
	for batch, want := range map[string]string{
		"3": "--deterministic: a batch of 3 is cut into no smaller parts, so the bits are those of 1 rank\n",
		"4": "--deterministic: a batch of 4 is cut into 4 virtual shards, so the bits are those of 1 to 4 ranks\n",
	} {
		out, _, err := small(t, filepath.Join(t.TempDir(), "a"), "--deterministic", "--steps", "1", "--batch", batch)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("batch %s: %v, want %q in\n%s", batch, err, want, out)
		}
	}
}

// A full disk is said with what to do.
func TestFullDisk(t *testing.T) {
	full := os.WriteFile("/dev/full", []byte("x"), 0o600)
	if full == nil {
		t.Fatal("/dev/full took it")
	}
	if got, want := advised(full).Error(), full.Error()+": make room and resume; the checkpoints that there are stay as they were"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	gone := &os.PathError{Op: "open", Path: "a/samples/step-00000100.png", Err: syscall.ENOENT}
	if got, want := advised(gone).Error(), gone.Error()+": the folder of the run was removed or moved while it trained: leave it in place"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q…", got, want)
	}
	if other := errors.New("other"); !errors.Is(advised(other), other) || advised(other).Error() != "other" || advised(nil) != nil {
		t.Errorf("others are changed: %v, %v", advised(other), advised(nil))
	}
}

// Before a checkpoint is written the lines up to it are synced: if they cannot be, there is
// no checkpoint that promises them.
func TestSavingSyncsMetrics(t *testing.T) {
	o, fs, err := parse(nil, []string{"--out", filepath.Join(t.TempDir(), "run"), "--steps", "9"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Started(0), r.Saving(0), r.metrics.Close()); err != nil {
		t.Fatal(err)
	}
	if err := r.Saving(0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v, want that of a file that cannot be synced", err)
	}
	r.metrics = nil
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run whose folder was moved away, or replaced, writes no checkpoint into a new one of that
// name: rank 0's and a keeper's say that it is gone.
func TestFolderGone(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	o, fs, err := parse(nil, []string{"--out", out, "--steps", "9"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{dir: r.dir}
	if err := errors.Join(r.Started(0), r.Saving(0), k.Saving(0), os.Rename(out, out+"-moved")); err != nil {
		t.Fatal(err)
	}
	const want = ": the folder of the run was removed or moved while it trained"
	check := func(what string) {
		for who, err := range map[string]error{"rank 0": r.Saving(1), "a keeper": k.Saving(1)} {
			if err == nil || !strings.Contains(err.Error(), out+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v, want %q", what, who, err, want)
			}
		}
	}
	check("moved")
	other, err := rundir.Create(out, rundir.Config{Program: "train"}, o.settings)
	if err != nil {
		t.Fatal(err)
	}
	check("another run")
	if err := errors.Join(other.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
}

// A line of metrics.jsonl has each number of its step, in its own place and unit.
func TestLineOfMetrics(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	o, fs, err := parse(nil, []string{"--out", out, "--batch", "10"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rec := loop.Record{Step: 3, Epoch: 2, Samples: 40, Names: []string{"kl"}, Values: []float64{7},
		StepTime: 100 * time.Millisecond, DataTime: 20 * time.Millisecond, CommTime: 5 * time.Millisecond}
	began := float64(time.Now().UnixMilli()) / 1000
	if err := errors.Join(r.Started(0), r.Stepped(rec), r.Close()); err != nil {
		t.Fatal(err)
	}
	ended := float64(time.Now().UnixMilli()) / 1000
	lines, err := rundir.ReadMetrics(rundir.Layout(out).MetricsFile())
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	want := rundir.Record{Step: 3, Epoch: 2, Samples: 40, Losses: map[string]float64{"kl": 7}, SamplesPerS: 100, StepMS: 100, DataMS: 20, CommMS: 5, MemBytes: lines[0].MemBytes, Time: lines[0].Time}
	if !reflect.DeepEqual(lines[0], want) || want.MemBytes < 1<<20 || !(began <= want.Time && want.Time <= ended) {
		t.Errorf("got %+v, want %+v", lines[0], want)
	}
}

// What is to be done is said of one step as of one.
func TestStepsToDo(t *testing.T) {
	for _, tt := range []struct {
		done, steps int64
		want        string
	}{
		{0, 1, "1 step"}, {0, 20, "20 steps"}, {4, 20, "steps 5 to 20"}, {19, 20, "step 20"},
		{1, 1, "the 1 step was done before (--steps of more goes on)"}, {20, 20, "all 20 steps were done before (--steps of more goes on)"},
	} {
		if got := plan(tt.done, tt.steps); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.done, tt.steps, got, tt.want)
		}
	}
}

// A run that goes on with no step left draws its last samples again, and the event files have
// their picture once, unless it is another.
func TestSamplesDrawnAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	if _, _, err := small(t, out); err != nil {
		t.Fatal(err)
	}
	goOn := func(args string, pictures int) {
		t.Helper()
		if err := resume(t, "--out "+out+args); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(out, "events", "*"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range files {
			events, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(events), "\x89PNG")
		}
		if n != pictures {
			t.Errorf("resumed with %q: %d pictures in %d event files, want %d", args, n, len(files), pictures)
		}
	}
	goOn("", 1)
	goOn(" --samples 3", 2)
	if err := os.Remove(filepath.Join(out, "samples", "step-00000002.png")); err != nil {
		t.Fatal(err)
	}
	goOn("", 3)
}
