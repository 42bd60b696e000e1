//go:build cgo

package cuda_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// scene does all that the package can, cleans up whatever happens, and returns
// every error.
func scene() (err error) {
	var undo []func() error
	defer func() {
		for _, f := range slices.Backward(undo) {
			err = errors.Join(err, f())
		}
	}()
	later := func(f func() error) { undo = append(undo, f) }

	d, err := cuda.OpenDevice(0)
	if err != nil {
		return err
	}
	later(d.Close)
	if _, _, err := d.MemInfo(); err != nil {
		return err
	}
	s, err := d.NewStream("s", 0)
	if err != nil {
		return err
	}
	later(s.Close)
	e, err := d.NewEvent(true)
	if err != nil {
		return err
	}
	later(e.Close)
	x, err := d.Alloc(64)
	if err != nil {
		return err
	}
	later(func() error { return d.Free(x) })
	host, err := d.AllocPinned(64)
	if err != nil {
		return err
	}
	later(host.Free)
	image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{})
	if err != nil {
		return err
	}
	m, err := d.Load(image)
	if err != nil {
		return err
	}
	later(m.Close)
	f, err := m.Function("scale")
	if err != nil {
		return err
	}
	work := func() error {
		return first(s.CopyIn(x, host, 0, 64), s.Launch(f, 1, 16, 0, scaleArgs(x, 16, 1)), s.Memset(x, 1, 4), s.Memset32(x, 1, 1),
			s.CopyDevice(x+32, x, 32), s.CopyOut(host, 0, x, 64))
	}
	if err := first(work(), s.Record(e), s.WaitEvent(e), s.HostFunc(func() {}), e.Sync(context.Background()), s.Sync(context.Background()), s.Sync(ended), d.Sync()); err != nil {
		return err
	}
	if _, err := e.Query(); err != nil {
		return err
	}
	if _, err := d.Elapsed(e, e); err != nil {
		return err
	}
	g, err := capture(d, s, work)
	if err != nil {
		return err
	}
	later(g.Close)
	exec, err := g.Instantiate()
	if err != nil {
		return err
	}
	later(exec.Close)
	if err := first(exec.Upload(s), exec.Launch(s), s.Sync(context.Background())); err != nil {
		return err
	}
	body, err := captureBody(d, s, work)
	if err != nil {
		return err
	}
	later(body.Close)
	inner, err := body.Instantiate()
	if err != nil {
		return err
	}
	later(inner.Close)
	return first(inner.Launch(s), s.Sync(context.Background()))
}

// ended can end, so that Sync polls.
var ended, _ = context.WithTimeout(context.Background(), time.Hour)

// TestEachCallFails makes each call of the scene fail once, in turn: there is an
// error that names the call, nothing hangs, and nothing is left.
func TestEachCallFails(t *testing.T) {
	m := cudatest.Use(t)
	ok(t, scene()) // what is loaded once, is
	m.Clean()
	before := m.Calls("*")
	ok(t, scene())
	calls := m.Calls("*") - before
	if calls < 40 {
		t.Fatalf("the scene is %d calls", calls)
	}
	var named []string
	for n := 1; n <= calls; n++ {
		m := cudatest.Use(t) // without the order of before
		m.Fail("*", n, 999)
		err := scene()
		var e *cuda.Error
		if !errors.As(err, &e) || e.Code != 999 {
			t.Fatalf("call %d of %d failed, and the error is %v", n, calls, err)
		}
		if !strings.Contains(err.Error(), e.Call) || strings.Contains(err.Error(), "\n") {
			t.Errorf("call %d: %q", n, err)
		}
		if !slices.Contains(named, e.Call) {
			named = append(named, e.Call)
		}
		m.Clean()
	}
	t.Logf("%d calls, errors of %d functions: %v", calls, len(named), named)
	if len(named) < 40 {
		t.Errorf("errors of %d functions", len(named))
	}
}
