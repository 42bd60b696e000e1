//go:build cgo

package nccl_test

import (
	"strings"
	"testing"

	"ebtrain/collective/cuda/cudatest"
)

// TestRecorder: enqueued collectives are in the flight recorder, with how they went.
func TestRecorder(t *testing.T) {
	m := cudatest.Use(t)
	x := group(t, 1, options())[0]
	p, err := newProgram(t.Context(), x)
	defer func() { _ = p.close() }() // done with
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.run(t.Context(), 0, p.enqueue); err != nil {
		t.Fatal(err)
	}
	got := x.Recorder().Recent()
	if len(got) < len(p.reqs) {
		t.Fatalf("the recorder has %v", got)
	}
	got = got[len(got)-len(p.reqs):]
	for i, req := range p.reqs {
		e := got[i]
		if e.Label != req.Label || e.Kind != req.Kind || e.Len != req.Vec.Len || e.Done.IsZero() || e.Err != nil {
			t.Errorf("the recorder has %s, want %s, well done", e, req)
		}
	}
	m.Fail("ncclBroadcast", 1, 1)
	last := p.reqs[len(p.reqs)-1]
	err = x.Enqueue(p.s, last)
	got = x.Recorder().Recent()
	if e := got[len(got)-1]; e.Label != last.Label || e.Err == nil || err == nil || !strings.Contains(err.Error(), e.Err.Error()) {
		t.Errorf("the recorder has %s (%v), want what Enqueue has come to: %v", e, e.Err, err)
	}
}
