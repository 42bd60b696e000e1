//go:build cgo

package nccl_test

import (
	"context"
	"errors"
	"fmt"
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
	for deadline := time.Now().Add(time.Minute); m.Live("contexts") != want; time.Sleep(time.Millisecond) {
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

// TestCloseWhereCopyIsKept: freeing the copy on which a collective was done waits for all of the
// device. Close does not wait for that longer than it says, and who waits for a collective that
// has failed does not at all.
func TestCloseWhereCopyIsKept(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("failed=%v", fails), func(t *testing.T) {
			if fails {
				t.Setenv("EBDOUBLE_NCCL_HANG", "1:0")
			}
			m := cudatest.Use(t)
			members := group(t, 2, options())
			x, y := members[0], members[1]
			members[0], members[1] = nil, nil
			freed, hangs := m.Calls("cuMemFree_v2"), make(chan struct{})
			ends, err := apartly(t.Context(), x, y, hangs)
			if err != nil {
				t.Fatal(err)
			}
			if !fails {
				if err := <-ends[0]; err != nil {
					t.Error(err)
				}
				for m.Calls("cuMemFree_v2") < freed+2 {
					time.Sleep(time.Millisecond)
				}
			} else {
				for m.Calls("run:ncclAllReduce") < 2 {
					time.Sleep(time.Millisecond)
				}
			}
			began := time.Now()
			x.Abort(errors.New("enough"))
			if fails {
				for r, end := range ends {
					if err := <-end; !errors.Is(err, collective.ErrAborted) {
						t.Errorf("rank %d got %v, want an abort", r, err)
					}
				}
			}
			if err := errors.Join(x.end(), x.dev.Close()); err != nil {
				t.Error(err)
			}
			if err := y.leaves(); err == nil || !strings.Contains(err.Error(), "the abort has not ended after 20ms: a graph that holds a collective is not closed, or the GPU hangs") {
				t.Errorf("got %v, want an error that says what the abort waits for", err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			close(hangs)
			contexts(t, m, 0)
		})
	}
}

// apartly starts an all-reduce of vectors that NCCL cannot have as they lie, beside something on
// y's device that ends when hangs is closed, or after a minute. It is how it ends on either.
func apartly(ctx context.Context, x, y *member, hangs chan struct{}) (ends [2]chan error, err error) {
	buffer, err := x.memory.Alloc(4096)
	if err != nil {
		return ends, err
	}
	s, err := y.dev.NewStream("program", 0)
	if err == nil {
		err = errors.Join(s.HostFunc(func() {
			select {
			case <-hangs:
			case <-time.After(time.Minute):
			}
		}), s.Close())
	}
	for r, z := range []*member{x, y} {
		ends[r] = make(chan error, 1)
		go func() {
			mem, err := z.Alloc(4096)
			if z == x {
				mem.Ptr = buffer.Ptr()
			}
			if err == nil {
				err = collective.Do(ctx, z, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32)})
			}
			ends[r] <- err
		}()
	}
	return ends, err
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
