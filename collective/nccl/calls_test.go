//go:build cgo

package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/nccl"
)

// What a failing call is to a group that makes one of each collective and closes.
const (
	fatal    = iota // every rank fails
	harmless        // nobody needs to notice
	closing         // who closes says so
)

// calls are those of NCCL's and of CUDA's that a group makes, and when they fail.
var calls = map[string]int{
	"ncclAllReduce": fatal, "ncclReduceScatter": fatal, "ncclAllGather": fatal, "ncclBroadcast": fatal,
	"ncclSend": fatal, "ncclRecv": fatal, "ncclGroupStart": fatal, "ncclGroupEnd": fatal, "ncclMemAlloc": fatal,
	"ncclCommGetAsyncError": fatal, "ncclCommRegister": harmless, "ncclCommFinalize": harmless,
	"ncclCommDeregister": closing, "ncclCommDestroy": closing, "ncclMemFree": closing,
	"cuLaunchKernel": fatal, "cuMemsetD32Async": fatal, "cuEventRecordWithFlags": fatal, "cuEventQuery": fatal, "cuMemAlloc_v2": fatal, "cuCtxSetCurrent": fatal,
}

// TestEveryCallFails: the first, the last and one in the middle of each function's calls fails,
// on some rank. Every rank ends and says why, and nothing is left.
func TestEveryCallFails(t *testing.T) {
	made := map[string]int{}
	t.Run("none", func(t *testing.T) {
		m := cudatest.Use(t)
		members := pair(t, m)
		for call := range calls {
			made[call] = -m.Calls(call)
		}
		together(t, members, func(x *member) error { return errors.Join(everything(t.Context(), x), x.Close()) })
		for call := range calls {
			made[call] += m.Calls(call)
		}
	})
	for call, how := range calls {
		n := made[call]
		picks := []int{1, (n + 1) / 2, n}
		switch call {
		case "cuEventQuery", "ncclCommGetAsyncError": // as many as there is time for
			picks = []int{1, 2}
		case "cuCtxSetCurrent": // as often as a goroutine comes to another thread
			picks = picks[:1]
		}
		slices.Sort(picks)
		for _, i := range slices.Compact(picks) {
			t.Run(fmt.Sprintf("%s/%d of %d", call, i, n), func(t *testing.T) { fails(t, call, i, how) })
		}
	}
}

// pair is two ranks that sum in a fixed order.
func pair(t *testing.T, m *cudatest.Machine) []*member {
	t.Helper()
	m.Set("DEVICES", "2")
	o := options()
	o.FixedOrder = true
	members, errs := attemptOn(t, m, 2, func(r int) int { return r }, same(o))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return members
}

// fails has the i-th call from now on fail.
func fails(t *testing.T, call string, i, how int) {
	m := cudatest.Use(t)
	members := pair(t, m)
	var failed, closed [2]error
	var elsewhere sync.WaitGroup
	elsewhere.Add(2)
	fail := sync.OnceFunc(func() { m.Fail(call, i, 1) })
	together(t, members, func(x *member) error {
		r := x.Rank()
		// The other rank's GPU is current: this rank has to change to its own, at least once.
		failed[r] = members[1-r].dev.Attach(func() error {
			elsewhere.Done()
			elsewhere.Wait()
			fail()
			return everything(t.Context(), x)
		})
		x.looked = true
		closed[r] = x.Close()
		return nil
	})
	word := strings.TrimSuffix(strings.TrimPrefix(call, "cu"), "_v2") // NCCL calls CUDA, too, and is to blame then
	says := func(errs [2]error) bool { return strings.Contains(fmt.Sprint(errs), word) }
	if wrong := (failed[0] == nil) != (how != fatal) || (failed[1] == nil) != (how != fatal); wrong || how == fatal && !says(failed) {
		t.Errorf("ranks ended with %v and %v", failed[0], failed[1])
	}
	for _, err := range closed { // what is closed may fail, too: the call is made to
		if err != nil && !strings.Contains(err.Error(), call) {
			t.Errorf("closed with %v", err)
		}
	}
	if how == closing && !says(closed) {
		t.Error("nobody who closed says that it failed")
	}
}

// everything is one of each.
func everything(ctx context.Context, x *member) error {
	p, err := newProgram(ctx, x)
	if err == nil {
		_, err = p.run(ctx, 0, p.enqueue)
	}
	if err != nil { // this rank may be the only one that knows
		x.Abort(err)
	}
	for _, req := range []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Max}, {Kind: collective.ReduceScatter, Op: collective.Min}, {Kind: collective.AllGather}, {Kind: collective.Broadcast},
	} {
		if err == nil {
			req.Vec = p.reqs[0].Vec.Slice(0, 640)
			err = collective.Do(ctx, x, req)
		}
	}
	if err == nil { // who is through hears of who is not
		err = collective.Do(ctx, x, collective.Request{Kind: collective.Barrier})
	}
	_ = p.close() // calls may fail
	return err
}

// TestAbortFails: what fails while the group ends is said by who closes, and nothing is left.
func TestAbortFails(t *testing.T) {
	for _, call := range []string{"ncclCommAbort", "ncclMemFree"} {
		t.Run(call, func(t *testing.T) {
			m := cudatest.Use(t)
			members := pair(t, m)
			cause := errors.New("enough")
			m.Fail(call, 2, 1)
			closed := make([]error, 2)
			together(t, members, func(x *member) error {
				_, err := x.Alloc(4096)
				return err
			})
			together(t, members, func(x *member) error {
				x.Abort(cause)
				x.looked = true
				closed[x.Rank()] = x.Close()
				return nil
			})
			if err := errors.Join(closed...); err == nil || strings.Count(err.Error(), call+": unhandled cuda error (1)") != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("closed with %v, want that %s failed, once", err, call)
			}
		})
	}
}

// TestRefusal: NCCL holds an error of a call against the communicator, where that does not
// block, and of a group whose member it refuses it launches nothing.
func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		fixed          bool
		call, launches string
	}{
		"a collective":        {false, "ncclAllReduce", "run:ncclAllReduce"},
		"a member of a group": {true, "ncclSend", "run:ncclRecv"},
	} {
		t.Run(name, func(t *testing.T) {
			m := cudatest.Use(t)
			o := options()
			o.FixedOrder = test.fixed
			together(t, group(t, 2, o), func(x *member) error {
				p, err := newProgram(t.Context(), x)
				if err != nil {
					return err
				}
				if err := x.Start(collective.Request{Kind: collective.Barrier}).Wait(t.Context()); err != nil || x.Rank() != 0 {
					return errors.Join(err, p.close())
				}
				m.Fail(test.call, 1, 5)
				for range 2 {
					if err := x.Enqueue(p.s, p.reqs[0]); err == nil || !strings.Contains(err.Error(), "invalid usage (5)") {
						x.Abort(err)
						return fmt.Errorf("got %w, want NCCL's refusal", err)
					}
				}
				x.Abort(errors.New("refused"))
				return p.close()
			})
			if n := m.Calls(test.launches); n != 0 {
				t.Errorf("%d operations were launched", n)
			}
		})
	}
}

// TestNoVersion: an NCCL that does not say its version is none, for all ranks.
func TestNoVersion(t *testing.T) {
	nccl.Forget()
	t.Cleanup(nccl.Forget)
	m := cudatest.Use(t)
	m.Set("DEVICES", "2")
	m.Fail("ncclGetVersion", 1, 3)
	_, errs := attemptOn(t, m, 2, func(r int) int { return r }, same(options()))
	all(t, errs, "NCCL is missing: nccl: ncclGetVersion: internal error (3)")
	for _, err := range errs {
		if !errors.Is(err, nccl.ErrMissing) {
			t.Errorf("got %v, want ErrMissing", err)
		}
	}
}
