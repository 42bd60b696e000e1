//go:build cgo

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

// captureBody records what f queues as a body, on the device's thread.
func captureBody(d *cuda.Device, s *cuda.Stream, f func() error) (*cuda.Graph, error) {
	g, err := d.NewBody()
	if err != nil {
		return nil, err
	}
	err = d.Do(func() error {
		if err := s.BeginCaptureTo(g); err != nil {
			return err
		}
		failed := f()
		return errors.Join(failed, s.EndCaptureTo(g))
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// TestReplayOfBody: what is replayed as the body of a node gives the same as a graph of
// its own, each time, in its turn on the stream, and is one operation more.
func TestReplayOfBody(t *testing.T) {
	seeds(t, func(t *testing.T) {
		d := device(t)
		s, side := stream(t, d, "compute"), stream(t, d, "side")
		fork, join := event(t, d, false), event(t, d, false)
		f := scale(t, d)
		const n = 300
		x, y, in, out := alloc(t, d, 4*n), alloc(t, d, 8*n), pinned(t, d, 4*n), pinned(t, d, 8*n)
		step := func() error {
			return first(
				s.Record(fork), side.WaitEvent(fork),
				side.CopyIn(y, in, 0, 4*n),
				side.Launch(f, 2, 128, 0, scaleArgs(y, n, 3)),
				side.Record(join),
				s.Memset(x, 0, 4*n),
				s.Launch(f, 1, 256, 0, scaleArgs(x, n, 2)),
				s.WaitEvent(join),
				s.CopyDevice(y+4*n, x, 4*n),
			)
		}
		g, err := captureBody(d, s, step)
		ok(t, err)
		plain, err := capture(d, s, step)
		ok(t, err)
		if g.NodeCount() != plain.NodeCount()+1 {
			t.Errorf("%d nodes, want one more than %d", g.NodeCount(), plain.NodeCount())
		}
		ok(t, plain.Close())
		exec, err := g.Instantiate()
		ok(t, err)
		if exec.NodeCount() != g.NodeCount() {
			t.Errorf("%d nodes in what is launched, want %d", exec.NodeCount(), g.NodeCount())
		}
		ok(t, exec.Upload(s))
		for v := range 5 {
			for i := range floats(in) {
				floats(in)[i] = float32(v)
			}
			ok(t, s.Memset(y, 0xff, 8*n))
			ok(t, exec.Launch(s))
			ok(t, s.CopyOut(out, 0, y, 8*n))
			ok(t, s.Sync(context.Background()))
			for i, got := range floats(out) {
				if want := []float32{3*float32(v) + 1, 1}[i/n]; got != want {
					t.Fatalf("run %d: element %d is %v, want %v", v, i, got, want)
				}
			}
		}
		ok(t, exec.Launch(s))
		ok(t, errors.Join(g.Close(), exec.Close())) // while it runs
		ok(t, s.Sync(context.Background()))
	})
}

// TestNoBody: what a body cannot hold, and what the driver refuses, is a typed error that
// says which node of which kind it is.
func TestNoBody(t *testing.T) {
	machine(t)
	d := device(t)
	s := stream(t, d, "s")
	e, x := event(t, d, true), alloc(t, d, 4)
	for _, c := range []struct {
		name, want, at, all string
		f                   func() error
	}{
		{"a record of an event", "node 1 of 2 is a record of an event", "at node 1 of 2, a record of an event", "1 × memset, 1 × record of an event", func() error { return first(s.Memset(x, 0, 4), s.RecordExternal(e)) }},
		{"a function of the host", "node 0 of 2 is a function of the host", "at node 0 of 2, a function of the host", "1 × memset, 1 × function of the host", func() error { return first(cuda.CaptureHostFunc(s), s.Memset(x, 0, 4)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := captureBody(d, s, c.f)
			ok(t, err)
			exec, err := g.Instantiate()
			if exec != nil || !errors.Is(err, cuda.ErrNoBody) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			exec, err = cuda.InstantiateUnseen(g)
			var failed *cuda.Error
			if exec != nil || !errors.Is(err, cuda.ErrNoBody) || !errors.As(err, &failed) || failed.Code != 1 || failed.Call != "cuGraphInstantiateWithParams" {
				t.Errorf("got %v from the driver", err)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, c.all) || !strings.Contains(text, "names an operation that is not supported, "+c.at) {
				t.Errorf("the driver says %s", text)
			}
			ok(t, g.Close())
		})
	}
	t.Run("a second one beside the first", func(t *testing.T) {
		g, err := captureBody(d, s, func() error { return s.Memset(x, 0, 4) })
		ok(t, err)
		exec, err := g.Instantiate()
		ok(t, err)
		if _, err := g.Instantiate(); !errors.Is(err, cuda.ErrNoBody) || !strings.Contains(err.Error(), "1 × memset") || !strings.Contains(err.Error(), "at no node") {
			t.Errorf("got %v", err)
		}
		ok(t, exec.Close())
		exec, err = g.Instantiate()
		ok(t, err)
		ok(t, errors.Join(exec.Close(), g.Close()))
	})
	t.Run("a spoiled capture", func(t *testing.T) {
		g, err := captureBody(d, s, d.Sync)
		var failed *cuda.Error
		if g != nil || !errors.As(err, &failed) || failed.Code != 900 {
			t.Errorf("got %v, %v", g, err)
		}
		ok(t, s.Memset(x, 0, 4))
		ok(t, s.Sync(context.Background()))
	})
}

// TestCanBody: drivers before CUDA 12.4 have no bodies, and say so.
func TestCanBody(t *testing.T) {
	m := machine(t)
	d := device(t)
	ok(t, d.CanBody())
	m.Set("DRIVER", "12030")
	for _, err := range []error{d.CanBody(), second(d.NewBody())} {
		if !errors.Is(err, cuda.ErrDriverTooOld) || !strings.Contains(err.Error(), "it serves CUDA 12.3, and conditional nodes of graphs need 12.4 or newer") {
			t.Errorf("got %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
