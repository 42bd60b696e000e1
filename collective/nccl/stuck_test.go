//go:build cgo

package nccl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/nccl"
)

// version is what the double's NCCL says until the test ends.
func version(t *testing.T, v string) {
	t.Helper()
	t.Setenv("EBDOUBLE_NCCL_VERSION", v)
	nccl.Forget()
	t.Cleanup(nccl.Forget)
}

// TestStuckLaunch: a collective that cannot be launched, as where the driver's queue is full
// behind one that hangs, does not keep its rank when the group ends. Where NCCL launches
// itself, the abort ends it; where its call does not return, no abort is allowed beside it,
// and its rank gives up.
func TestStuckLaunch(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		started bool
	}{
		"2.28, enqueued": {"22809", false}, "2.28, started": {"22809", true}, "2.22": {"22203", false},
	} {
		t.Run(name, func(t *testing.T) {
			version(t, test.version)
			var took, hang time.Duration
			for _, hang = range []time.Duration{1500 * time.Millisecond, 6 * time.Second, 24 * time.Second} { // on a busy machine all takes longer
				if took = stuckFor(t, hang, test.started, test.version == "22203"); took < hang {
					return
				}
			}
			t.Errorf("it took %v, as what hangs for %v", took, hang)
		})
	}
}

// stuckFor is how long two ranks take to end where a launch of one of them hangs for so long.
// Before 2.23 the abort of that one waits for the call, and Close gives up.
func stuckFor(t *testing.T, hang time.Duration, started, waits bool) (took time.Duration) {
	t.Helper()
	t.Setenv("EBDOUBLE_NCCL_STUCK", fmt.Sprintf("1:0:%d", hang.Milliseconds()))
	m := cudatest.Use(t)
	members := group(t, 2, options())
	began := time.Now()
	together(t, members, func(x *member) error { return stuck(t, x, started) })
	for r, x := range members {
		members[r] = nil
		if err := x.leaves(); err != nil && (r == 0 || !waits) {
			t.Errorf("rank %d closes with %v", r, err)
		}
	}
	took = time.Since(began)
	contexts(t, m, 0)
	return took
}

// stuck ends the group while rank 1 cannot launch.
func stuck(t *testing.T, x *member, started bool) error {
	p := &program{member: x}
	err := func() (err error) {
		if p.mem, err = x.Alloc(4096); err != nil {
			return err
		}
		if x.Rank() == 0 {
			time.AfterFunc(100*time.Millisecond, func() { x.Abort(errors.New("enough")) })
		}
		req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: p.mem.As(collective.F32), Label: "gradient"}
		if started {
			return collective.Do(t.Context(), x, req)
		}
		return p.pass(t.Context(), req)
	}()
	if !errors.Is(err, collective.ErrAborted) {
		return fmt.Errorf("got %w, want an abort", err)
	}
	return p.close()
}

// TestComputesTooLong: a device that is in no collective for longer than it may is told of by
// where it is: before its first, or behind the last.
func TestComputesTooLong(t *testing.T) {
	for name, want := range map[string]string{
		"before": "the device is still at what comes before its first collective after 800ms",
		"behind": `the device is still at what comes behind all-reduce sum f32[1024] "gradient" after 800ms`,
	} {
		t.Run(name, func(t *testing.T) {
			members := group(t, 2, options())
			for _, x := range members {
				nccl.SetTimeout(x.Comm, 800*time.Millisecond)
			}
			together(t, members, func(x *member) error {
				p := &program{member: x}
				mem, err := x.Alloc(4096)
				if err != nil {
					return err
				}
				p.s, err = x.dev.NewStream("program", 0)
				if err != nil {
					return err
				}
				if name == "behind" {
					req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32), Label: "gradient"}
					if err := errors.Join(x.Agree(t.Context(), []collective.Request{req}), x.Enqueue(p.s, req)); err != nil {
						return err
					}
				}
				if p.over, err = x.dev.NewEvent(false); err != nil {
					return err
				}
				told := make(chan struct{})
				err = errors.Join(p.s.HostFunc(func() {
					select {
					case <-told:
					case <-time.After(time.Minute):
					}
				}), p.s.Record(p.over))
				if err == nil {
					err = x.Await(t.Context(), p.over)
				}
				close(told)
				if err == nil || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("got %w, want %s", err, want)
				}
				return p.close()
			})
		})
	}
}
