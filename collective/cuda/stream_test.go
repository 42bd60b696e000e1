//go:build cgo

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/collective/cuda"
)

// seeds are three ways for streams to be late.
func seeds(t *testing.T, f func(t *testing.T)) {
	for seed := range 3 {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := machine(t)
			m.Set("SEED", fmt.Sprint(seed+1))
			m.Set("DELAY", "300")
			m.Set("ORDER", "2")
			f(t)
		})
	}
}

// held has a stream stand still until goOn is called, the test ends, or somebody waits for it
// who was not to.
func held(t *testing.T, s *cuda.Stream) (goOn func()) {
	t.Helper()
	gate := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(goOn)
	ok(t, s.HostFunc(func() {
		select {
		case <-gate:
		case <-time.After(20 * time.Second):
		}
	}))
	return goOn
}

// TestStreamsAndEvents: a value goes through three streams, joined by events, and
// operations of one stream run in their order.
func TestStreamsAndEvents(t *testing.T) {
	seeds(t, func(t *testing.T) {
		d := device(t)
		in, work, out := stream(t, d, "in"), stream(t, d, "work"), stream(t, d, "out")
		copied, worked, read := event(t, d, false), event(t, d, false), event(t, d, false)
		f := scale(t, d)
		const n, rounds = 700, 8
		x, host, result := alloc(t, d, 4*n), pinned(t, d, 4*n), pinned(t, d, 4*n*rounds)
		for i := range floats(host) {
			floats(host)[i] = 1
		}
		for r := range rounds {
			ok(t, in.WaitEvent(read)) // of the round before: not recorded in the first
			ok(t, in.CopyIn(x, host, 0, 4*n))
			ok(t, in.Record(copied))
			ok(t, work.WaitEvent(copied))
			for range r {
				ok(t, work.Launch(f, 2, 64, 0, scaleArgs(x, n, 2)))
			}
			ok(t, work.Record(worked))
			ok(t, out.WaitEvent(worked))
			ok(t, out.CopyOut(result, 4*n*r, x, 4*n))
			ok(t, out.Record(read))
		}
		ok(t, out.Sync(context.Background()))
		for i, v := range floats(result) {
			if r := i / n; v != float32(int(2)<<r-1) {
				t.Fatalf("round %d, element %d is %v", r, i%n, v)
			}
		}
	})
}

// TestMissingEdge: without the event the reader is too early, and meets the NaN
// that fresh memory is full of. So the machine shows what a missing edge does.
func TestMissingEdge(t *testing.T) {
	machine(t)
	d := device(t)
	writer, reader := stream(t, d, "writer"), stream(t, d, "reader")
	x, host, got := alloc(t, d, 4), pinned(t, d, 4), pinned(t, d, 4)
	floats(host)[0] = 7
	goOn := held(t, writer)
	ok(t, writer.CopyIn(x, host, 0, 4))
	ok(t, reader.CopyOut(got, 0, x, 4))
	ok(t, reader.Sync(context.Background()))
	if v := floats(got)[0]; !math.IsNaN(float64(v)) {
		t.Errorf("the reader got %v before the writer was there", v)
	}
	goOn()
	ok(t, writer.Sync(context.Background()))
	ok(t, reader.CopyOut(got, 0, x, 4))
	ok(t, reader.Sync(t.Context()))
	if v := floats(got)[0]; v != 7 {
		t.Errorf("the reader got %v, want 7", v)
	}
}

// TestSyncEnds: a context that ends ends the wait, not the work.
func TestSyncEnds(t *testing.T) {
	machine(t)
	d := device(t)
	s, e := stream(t, d, "slow"), event(t, d, false)
	goOn := held(t, s)
	ok(t, s.Record(e))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync of the stream: %v", err)
	}
	if err := e.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync of the event: %v", err)
	}
	if done, err := s.Query(); done || err != nil {
		t.Errorf("Query: %v, %v", done, err)
	}
	if done, err := e.Query(); done || err != nil {
		t.Errorf("Query of the event: %v, %v", done, err)
	}
	goOn()
	ok(t, e.Sync(t.Context()))
	ok(t, s.Sync(t.Context()))
	ok(t, d.Sync())
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query at the end: %v, %v", done, err)
	}
}

// TestFillsAndCopies: each kind of fill and copy, and the bounds of pinned memory.
func TestFillsAndCopies(t *testing.T) {
	machine(t)
	d := device(t)
	s := stream(t, d, "s")
	x, y, host := alloc(t, d, 16), alloc(t, d, 16), pinned(t, d, 16)
	ok(t, s.Memset(x, 0xAB, 16))
	ok(t, s.Memset32(x+4, 0x01020304, 2))
	ok(t, s.CopyDevice(y, x, 16))
	ok(t, s.CopyOut(host, 0, y, 16))
	ok(t, s.Memset32(host.Ptr()+12, 9, 1)) // pinned memory, from the device's side
	ok(t, s.Sync(context.Background()))
	if got, want := fmt.Sprintf("%x", host.Bytes()), "abababab040302010403020109000000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, err := range []error{s.CopyIn(x, host, 9, 8), s.CopyIn(x, host, -1, 1), s.CopyOut(host, 17, x, 0), s.CopyOut(host, 0, x, -1)} {
		if err == nil || !strings.Contains(err.Error(), "pinned memory of 16") {
			t.Errorf("a copy outside of pinned memory: %v", err)
		}
	}
	for _, err := range []error{s.Memset(x, 0, 17), s.CopyDevice(x, y+8, 16), s.Memset32(x+2, 0, 1), s.CopyDevice(x, x+4, 8)} {
		var e *cuda.Error
		if !errors.As(err, &e) || e.Code != 1 {
			t.Errorf("an operation outside of memory: %v", err)
		}
	}
	for _, err := range []error{s.Memset(x, 0, 0), s.Memset32(x, 0, 0), s.CopyIn(x, host, 0, 0), s.CopyOut(host, 0, x, 0), s.CopyDevice(x, y, 0)} {
		ok(t, err)
	}
}

// TestHostFunc: a function of Go's runs in its turn.
func TestHostFunc(t *testing.T) {
	machine(t)
	d := device(t)
	s := stream(t, d, "s")
	x, host := alloc(t, d, 4), pinned(t, d, 4)
	var seen atomic.Uint32
	ok(t, s.Memset(x, 5, 4))
	ok(t, s.CopyOut(host, 0, x, 4))
	ok(t, s.HostFunc(func() { seen.Store(uint32(host.Bytes()[0])) }))
	ok(t, s.Sync(context.Background()))
	if seen.Load() != 5 {
		t.Errorf("the function saw %d", seen.Load())
	}
}

// TestElapsed: time between two events, which need to be timed.
func TestElapsed(t *testing.T) {
	m := machine(t)
	d := device(t)
	s := stream(t, d, "s")
	a, b, untimed := event(t, d, true), event(t, d, true), event(t, d, false)
	x := alloc(t, d, 4)
	m.Slow("run:cuMemsetD8Async", 1, 30*time.Millisecond)
	ok(t, s.Record(a))
	goOn := held(t, s)
	ok(t, s.Memset(x, 0, 4))
	ok(t, s.Record(b))
	ok(t, s.Record(untimed))
	if _, err := d.Elapsed(a, b); err == nil {
		t.Error("Elapsed of an event that is not over: no error")
	}
	goOn()
	ok(t, s.Sync(context.Background()))
	took, err := d.Elapsed(a, b)
	ok(t, err)
	if took < 30*time.Millisecond || took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := d.Elapsed(a, untimed); err == nil {
		t.Error("Elapsed of an untimed event: no error")
	}
	ok(t, a.Close())
	ok(t, a.Close()) // twice is once
}
