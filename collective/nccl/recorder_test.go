//go:build cgo

package nccl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/nccl"
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

// TestRecorderBesideRollCall: where a collective cannot be launched, the others of the group
// that follow, as the roll call that finds out who is late, do not end in its place.
func TestRecorderBesideRollCall(t *testing.T) {
	version(t, "22809")
	t.Setenv("EBDOUBLE_NCCL_STUCK", "1:0:15000")
	members := group(t, 2, options())
	together(t, members, func(x *member) error {
		nccl.SetTimeout(x.Comm, 800*time.Millisecond)
		p := &program{member: x}
		mem, err := x.Alloc(4096)
		if err != nil {
			return err
		}
		if p.s, err = x.dev.NewStream("program", 0); err != nil {
			return err
		}
		if p.over, err = x.dev.NewEvent(false); err != nil {
			return err
		}
		req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32), Label: "gradient"}
		if err := x.Agree(t.Context(), []collective.Request{req}); err != nil {
			return err
		}
		err = x.Queueing(func() error { return x.Enqueue(p.s, req) })
		if err == nil { // the other's end comes while the device is waited for
			err = errors.Join(p.s.Record(p.over), x.Await(t.Context(), p.over))
		}
		if err == nil {
			return errors.New("nobody was late")
		}
		for _, e := range x.Recent() {
			if e.Done.IsZero() || e.Enqueued != (e.Label == "gradient") {
				t.Errorf("rank %d has ended, and its recorder has %s", x.Rank(), e)
			}
		}
		return p.close()
	})
	for _, x := range members {
		x.looked = true // failed by design
	}
}
