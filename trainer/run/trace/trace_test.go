package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/exec"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// recorded are the spans of one step of a rank whose clock begins late by some
// time: two convolutions, two collectives of which the second waits for the
// first, and a wait.
func recorded(late time.Duration) []Span {
	begin := time.Unix(1_700_000_000, 0).UTC().Add(late)
	at := func(us int) time.Time { return begin.Add(time.Duration(us) * time.Microsecond) }
	r := NewRecorder(begin)
	r.Loop("load", at(0), at(100))
	op := func(kind, name, scope string, from, to int, flops, bytes int64) {
		r.Op(exec.Event{Kind: kind, Name: name, Scope: scope, Start: at(from), Time: at(to).Sub(at(from)), Flops: flops, Bytes: bytes})
	}
	op("Conv2D", "conv2d{3x3}", "energy/conv1", 110, 310, 20_000_000, 4096)
	op("Start", `start allreduce{mean "bucket 0"}`, "", 310, 311, 0, 0)
	op("Conv2DGradW", "conv2d_grad_w{3x3}", "energy/conv1", 311, 400, 1_000_000, 8192)
	op("Start", `start allreduce{mean "bucket 1"}`, "", 400, 401, 0, 0)
	op(exec.Collective, "bucket 1", "", 400, 620, 0, 1<<20)
	op("Wait", `wait allreduce{mean "bucket 1"}`, "", 401, 620, 0, 0)
	op(exec.Collective, "bucket 0", "", 310, 550, 0, 2<<20) // told when it is waited for, after a later one
	op("Wait", `wait allreduce{mean "bucket 0"}`, "", 620, 620, 0, 0)
	op("Fused", "fused f32[8]", "adam", 620, 650, 0, 96)
	r.Loop("run", at(105), at(660))
	r.Loop("step", at(0), at(700))
	return r.Spans()
}

// TestGolden writes the trace of two ranks.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	if err := Write(&got, [][]Span{recorded(0), recorded(1500 * time.Nanosecond)}); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/two-ranks.json"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs; if the new trace is right, run go test ./trainer/run/trace -update. Got:\n%s", file, &got)
	}
}

// TestFormat reads a trace as a viewer does.
func TestFormat(t *testing.T) {
	var text bytes.Buffer
	if err := Write(&text, [][]Span{recorded(0), recorded(time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  float64
			Pid, Tid int
		}
	}
	if err := json.Unmarshal(text.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	type row struct{ pid, tid int }
	names, end := map[string]int{}, map[row][]float64{} // ends of the spans that are open
	for _, e := range file.TraceEvents {
		names[e.Ph]++
		if e.Ph != "X" {
			continue
		}
		open := end[row{e.Pid, e.Tid}]
		for len(open) > 0 && open[len(open)-1] <= e.Ts {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && e.Ts+e.Dur > open[len(open)-1] {
			t.Errorf("%s of rank %d, %v to %v, overlaps the end of one that began before it", e.Name, e.Pid, e.Ts, e.Ts+e.Dur)
		}
		end[row{e.Pid, e.Tid}] = append(open, e.Ts+e.Dur)
	}
	if names["X"] != 24 || names["M"] != 6 {
		t.Errorf("%d spans and %d names, want 24 and 6", names["X"], names["M"])
	}
}

// TestCollectivesTakeTurns wants the second to begin when the first is done.
func TestCollectivesTakeTurns(t *testing.T) {
	var got []Span
	for _, s := range recorded(0) {
		if s.Row == Communication {
			got = append(got, s)
		}
	}
	if len(got) != 2 || got[0].Name != "bucket 0" || got[1].Name != "bucket 1" {
		t.Fatalf("collectives are %+v", got)
	}
	if got[0].Time != 240_000 || got[0].Queued != 0 || got[1].Start != got[0].Start+240_000 || got[1].Queued != 150_000 || got[1].Time != 70_000 {
		t.Errorf("got %+v and %+v", got[0], got[1])
	}
}

// One that is over before those before it has taken no time of its own: it is no span of
// less than none, and who comes behind it waits as long.
func TestCollectiveWithinAnother(t *testing.T) {
	at := time.Unix(100, 0)
	r := NewRecorder(at)
	for _, c := range []struct{ start, time time.Duration }{{0, 10}, {2, 3}, {4, 8}} {
		r.Op(exec.Event{Kind: exec.Collective, Start: at.Add(c.start), Time: c.time})
	}
	var got [][3]int64
	for _, s := range r.Spans() {
		got = append(got, [3]int64{s.Start - at.UnixNano(), s.Time, s.Queued})
	}
	if want := [][3]int64{{0, 10, 0}, {10, 0, 8}, {10, 2, 6}}; !slices.Equal(got, want) {
		t.Errorf("start, time and wait are %v, want %v", got, want)
	}
}

// TestGather brings lists of different lengths together.
func TestGather(t *testing.T) {
	comms, err := host.NewLocal(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	mine := [][]Span{recorded(0), nil, recorded(time.Second)[:2]}
	got, errs := make([][][]Span, 3), make([]error, 3)
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() { got[r], errs[r] = Gather(context.Background(), c, mine[r]) })
	}
	wg.Wait()
	for r, c := range comms {
		if errs[r] != nil || !reflect.DeepEqual(got[r], mine) {
			t.Errorf("rank %d got %v, %v", r, got[r], errs[r])
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	var alone collective.Comm
	if got, err := Gather(t.Context(), alone, mine[0]); err != nil || len(got) != 1 || len(got[0]) != len(mine[0]) {
		t.Errorf("alone: %v, %v", got, err)
	}
}
