package loop_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/trainer/run/loop"
)

// traceEvent is an entry of a trace file, as a viewer reads it.
type traceEvent struct {
	Name, Cat, Ph string
	Ts, Dur       float64 // µs
	Pid, Tid      int
	Args          map[string]any
}

// TestProfile traces one step of two ranks: every op lies in the step of its
// rank, and all of them take no longer than it.
func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	j := job{world: 2, config: loop.Config{Batch: 4, Steps: 3, Seed: 1, Profile: loop.Profile{File: file, Step: 1}}}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	checkTraceFile(t, file, 2)
}

// checkTraceFile checks the trace of a step of some ranks.
func checkTraceFile(t *testing.T, file string, ranks int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		var mine []traceEvent
		for _, e := range trace.TraceEvents {
			if e.Ph == "X" && e.Pid == rank {
				mine = append(mine, e)
			}
		}
		checkStep(t, rank, mine)
	}
}

func checkStep(t *testing.T, rank int, events []traceEvent) {
	t.Helper()
	kinds, ops := map[string]int{}, 0.0
	var step traceEvent
	for _, e := range events {
		kinds[e.Cat]++
		if e.Cat == "loop" {
			kinds[e.Name]++
			if e.Name == "step" {
				step = e
			}
		} else if e.Tid == 0 {
			ops += e.Dur
		}
	}
	const slack = 0.01 // µs: three digits are written
	for _, e := range events {
		if e.Ts < step.Ts-slack || e.Ts+e.Dur > step.Ts+step.Dur+slack {
			t.Errorf("rank %d: %+v is not in the step %+v", rank, e, step)
		}
		if e.Cat == "Conv2D" && (e.Args["flops"] == nil || e.Args["bytes"] == nil || !strings.Contains(e.Name, "/")) {
			t.Errorf("rank %d: a convolution is %+v", rank, e)
		}
	}
	for _, want := range []string{"step", "load", "feed", "run", "report", "Conv2D", "Conv2DGradW", "Fused", "Start", "Wait", "collective"} {
		if kinds[want] == 0 {
			t.Errorf("rank %d: no %s in the trace", rank, want)
		}
	}
	if kinds["Start"] != kinds["collective"] || kinds["Wait"] != kinds["collective"] {
		t.Errorf("rank %d: %d starts, %d waits, %d collectives", rank, kinds["Start"], kinds["Wait"], kinds["collective"])
	}
	if ops <= 0 || ops > step.Dur {
		t.Errorf("rank %d: ops take %v µs of a step of %v µs", rank, ops, step.Dur)
	}
}
