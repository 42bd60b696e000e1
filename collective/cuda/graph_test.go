//go:build cgo

package cuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

// capture records what f queues, on the device's thread.
func capture(d *cuda.Device, s *cuda.Stream, f func() error) (g *cuda.Graph, err error) {
	err = d.Do(func() error {
		if err := s.BeginCapture(); err != nil {
			return err
		}
		failed := f()
		g, err = s.EndCapture()
		return errors.Join(failed, err)
	})
	if err != nil && g != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestReplay: a captured fork and join gives the same as eager operations, each
// time that it is replayed, from what the pinned memory holds then.
func TestReplay(t *testing.T) {
	seeds(t, func(t *testing.T) {
		d := device(t)
		s, side := stream(t, d, "compute"), stream(t, d, "side")
		fork, join, reached := event(t, d, false), event(t, d, false), event(t, d, true)
		f := scale(t, d)
		const n = 300
		x, y, in, out := alloc(t, d, 4*n), alloc(t, d, 4*n), pinned(t, d, 4*n), pinned(t, d, 8*n)
		progress := pinned(t, d, 4)
		step := func(external bool) error {
			var seen error
			if external {
				seen = s.RecordExternal(reached)
			}
			return first(
				s.Memset32(progress.Ptr(), 1, 1),
				s.CopyIn(x, in, 0, 4*n),
				s.Record(fork), side.WaitEvent(fork),
				side.CopyIn(y, in, 0, 4*n),
				side.Launch(f, 2, 128, 0, scaleArgs(y, n, 3)),
				side.Record(join),
				s.Launch(f, 1, 256, 0, scaleArgs(x, n, 2)),
				s.WaitEvent(join),
				s.CopyOut(out, 0, x, 4*n),
				s.CopyOut(out, 4*n, y, 4*n),
				s.Memset32(progress.Ptr(), 2, 1),
				seen,
			)
		}
		set := func(v float32) {
			for i := range floats(in) {
				floats(in)[i] = v
			}
		}
		check := func(v float32) {
			t.Helper()
			for i, got := range floats(out) {
				if want := []float32{2*v + 1, 3*v + 1}[i/n]; got != want {
					t.Fatalf("element %d is %v, want %v", i, got, want)
				}
			}
			if progress.Bytes()[0] != 2 {
				t.Fatalf("progress is %d", progress.Bytes()[0])
			}
		}

		set(1)
		ok(t, step(false))
		ok(t, s.Sync(context.Background()))
		check(1)

		g, err := capture(d, s, func() error { return step(true) })
		ok(t, err)
		if g.NodeCount() != 9 {
			t.Errorf("%d nodes, want 9", g.NodeCount())
		}
		exec, err := g.Instantiate()
		ok(t, err)
		ok(t, g.Close())
		ok(t, exec.Upload(s))
		if exec.NodeCount() != 9 {
			t.Errorf("%d nodes in what is launched, want 9", exec.NodeCount())
		}
		for v := range 5 {
			set(float32(v))
			ok(t, exec.Launch(s))
			ok(t, s.Sync(context.Background()))
			check(float32(v))
		}
		if done, err := reached.Query(); !done || err != nil {
			t.Errorf("the event of the graph: %v, %v", done, err)
		}
		set(9)
		ok(t, exec.Launch(s))
		ok(t, exec.Launch(s))
		ok(t, exec.Close()) // while it runs
		ok(t, s.Sync(context.Background()))
		check(9)
	})
}

// TestForbidden: what a capture does not allow is an error that spoils it, and
// the stream serves again afterwards.
func TestForbidden(t *testing.T) {
	machine(t)
	d := device(t)
	s, other := stream(t, d, "captured"), stream(t, d, "other")
	e, before, captured := event(t, d, false), event(t, d, false), event(t, d, false)
	x, host := alloc(t, d, 4), pinned(t, d, 4)
	image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
	ok(t, err)
	ok(t, other.Memset(x, 0, 4))
	ok(t, other.Record(before))
	ok(t, d.Sync())
	for _, c := range []struct {
		name string
		code int
		f    func() error
	}{
		{"Alloc", 900, func() error { _, err := d.Alloc(4); return err }},
		{"AllocPinned", 900, func() error { _, err := d.AllocPinned(4); return err }},
		{"Free", 900, func() error { return d.Free(x + 1) }},
		{"Sync of the device", 900, d.Sync},
		{"Sync of the stream", 900, func() error { return s.Sync(context.Background()) }},
		{"Sync of another stream", 900, func() error { return other.Sync(context.Background()) }},
		{"Query", 900, func() error { _, err := s.Query(); return err }},
		{"Query of an event", 900, func() error { _, err := before.Query(); return err }},
		{"Load", 900, func() error { _, err := d.Load(image); return err }},
		{"BeginCapture again", 900, s.BeginCapture},
		{"an event of before", 905, func() error { return s.WaitEvent(before) }},
		{"work left on another stream", 904, func() error {
			return first(s.Memset(x, 0, 4), s.Record(e), other.WaitEvent(e), other.Memset(x, 1, 4))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := capture(d, s, func() error {
				err := c.f()
				if c.code != 904 && err == nil {
					t.Error("no error at the call")
				}
				return err
			})
			var failed *cuda.Error
			if g != nil || !errors.As(err, &failed) || failed.Code != c.code {
				t.Fatalf("got %v, %v, want code %d", g, err, c.code)
			}
			if c.code != 904 && !strings.Contains(err.Error(), "CAPTURE_INVALIDATED") {
				t.Errorf("the end of the capture does not say that it was spoiled: %v", err)
			}
			for _, s := range []*cuda.Stream{s, other} {
				if on, err := s.Capturing(); on || err != nil {
					t.Errorf("stream %s is captured still: %v, %v", s.Name(), on, err)
				}
				ok(t, s.Memset(x, 3, 4))
				ok(t, s.CopyOut(host, 0, x, 4))
				ok(t, s.Sync(context.Background()))
			}
		})
	}
	t.Run("HostFunc", func(t *testing.T) {
		g, err := capture(d, s, func() error {
			if err := s.HostFunc(func() {}); err == nil || !strings.Contains(err.Error(), "cannot be captured") {
				t.Errorf("got %v", err)
			}
			return first(s.Memset(x, 0, 4), s.Record(captured))
		})
		ok(t, err)
		ok(t, g.Close())
	})
	t.Run("an event of a capture", func(t *testing.T) {
		if _, err := captured.Query(); err == nil {
			t.Error("Query: no error")
		}
		if err := captured.Sync(context.Background()); err == nil {
			t.Error("Sync: no error")
		}
	})
	t.Run("another thread ends it", func(t *testing.T) {
		begun := make(chan struct{})
		end := make(chan struct{})
		over := make(chan error)
		go func() {
			over <- d.Do(func() error {
				err := s.BeginCapture()
				close(begun)
				<-end
				g, e := s.EndCapture()
				if e == nil {
					e = g.Close()
				}
				return errors.Join(err, e)
			})
		}()
		<-begun
		var e *cuda.Error
		if err := d.Attach(func() error { _, err := s.EndCapture(); return err }); !errors.As(err, &e) || e.Code != 908 {
			t.Errorf("got %v, want code 908", err)
		}
		// What others do on other streams meanwhile is allowed.
		ok(t, other.Memset(x, 3, 4))
		ok(t, other.Sync(context.Background()))
		close(end)
		ok(t, <-over)
	})
	t.Run("not begun", func(t *testing.T) {
		if _, err := s.EndCapture(); err == nil {
			t.Error("no error")
		}
		if err := s.RecordExternal(e); err == nil {
			t.Error("RecordExternal: no error")
		}
	})
}

// TestMissingEdgeInGraph: a graph's nodes run in any order that its edges allow.
func TestMissingEdgeInGraph(t *testing.T) {
	machine(t)
	d := device(t)
	s, side := stream(t, d, "s"), stream(t, d, "side")
	fork, join := event(t, d, false), event(t, d, false)
	x, out := alloc(t, d, 4), pinned(t, d, 4)
	wrong := 0
	for range 40 {
		g, err := capture(d, s, func() error {
			return first(s.Record(fork), side.WaitEvent(fork), side.Memset(x, 1, 4), side.Record(join),
				s.CopyOut(out, 0, x, 4), s.WaitEvent(join)) // too late
		})
		ok(t, err)
		exec, err := g.Instantiate()
		ok(t, err)
		ok(t, s.Memset(x, 0, 4))
		ok(t, exec.Launch(s))
		ok(t, s.Sync(context.Background()))
		if out.Bytes()[0] != 1 {
			wrong++
		}
		ok(t, errors.Join(g.Close(), exec.Close()))
	}
	if wrong == 0 || wrong == 40 {
		t.Errorf("%d of 40 graphs without an edge went wrong", wrong)
	}
}
