//go:build cgo

package nccl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/nccl"
)

// TestLateClose: a rank that closes waits for one that does so later, longer than NCCL takes
// to finalize, and leaves nothing.
func TestLateClose(t *testing.T) {
	members := group(t, 2, options())
	over := make(chan error, 1)
	go func() { over <- members[0].Close() }()
	select {
	case err := <-over:
		t.Fatalf("it closed alone: %v", err)
	case <-time.After(3 * time.Second):
	}
	if err := errors.Join(members[1].Close(), <-over); err != nil {
		t.Error(err)
	}
}

// leaves closes all that a member of a group stands on but the group below.
func (x *member) leaves() error {
	nccl.SetPatience(x.Comm, 20*time.Millisecond)
	return errors.Join(x.Close(), x.memory.Close(), x.dev.Close())
}

// contexts waits until so many are left, and the machine is clean of all else if it is 0.
func contexts(t *testing.T, m *cudatest.Machine, want int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); m.Live("contexts") != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d contexts are left, want %d", m.Live("contexts"), want)
		}
	}
	if want == 0 {
		m.Clean()
	}
}

// TestCloseGivesUp: what has not ended when Close gives up keeps its context, though the
// device is closed, and ends in it: where another rank closes late, nothing is left then.
func TestCloseGivesUp(t *testing.T) {
	m := cudatest.Use(t)
	members := group(t, 2, options())
	x, y := members[0], members[1]
	members[0], members[1] = nil, nil
	if err := x.leaves(); err != nil {
		t.Errorf("it closed with %v, and only another rank is late", err)
	}
	contexts(t, m, 2)
	if err := y.leaves(); err != nil {
		t.Error(err)
	}
	contexts(t, m, 0)
}

// TestAbortGivesUp: so does an abort that waits for a graph.
func TestAbortGivesUp(t *testing.T) {
	m := cudatest.Use(t)
	x := group(t, 1, options())
	p, err := newProgram(t.Context(), x[0])
	if err == nil {
		err = p.capture()
	}
	if err != nil {
		t.Fatal(err)
	}
	graph := p.graph
	p.graph = nil
	x[0].Abort(errors.New("enough"))
	if err := errors.Join(p.close(), x[0].leaves()); err == nil || !strings.Contains(err.Error(), "the abort has not ended after 20ms: a graph that holds a collective is not closed") {
		t.Errorf("got %v, want an error that says what the abort waits for", err)
	}
	x[0] = nil
	contexts(t, m, 1)
	if err := graph.Close(); err != nil {
		t.Error(err)
	}
	contexts(t, m, 0)
}

// TestLostIsSaidOnce: what NCCL frees of a device that is lost fails, and who closes does not
// say so: the collective that found it lost has.
func TestLostIsSaidOnce(t *testing.T) {
	m := cudatest.Use(t)
	x := group(t, 1, options())[0]
	mem, err := x.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	m.Fail("run:ncclAllReduce", 1, 700)
	err = collective.Do(t.Context(), x, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32)})
	if e, ok := errors.AsType[*cuda.Error](err); !ok || !e.Sticky() {
		t.Fatalf("got %v, want that the device is lost", err)
	}
	x.looked = true // tests' memory was on it
	if err := x.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
}
