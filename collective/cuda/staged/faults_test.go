//go:build cgo

package staged_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/abi"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/cuda/staged"
	"ebtrain/collective/host"
)

// scene is a rank from the opening of its device to its closing: one of each collective,
// started and enqueued. It cleans up whatever happens.
func scene(ctx context.Context, below collective.Comm) (err error) {
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		below.Abort(err)
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	c, err := staged.New(ctx, below, dev, staged.Options{Timeout: 20 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := collectives(ctx, c, dev); err != nil {
		c.Abort(err) // this rank may be the only one that knows
		return err
	}
	return nil
}

func collectives(ctx context.Context, c *staged.Comm, dev *cuda.Device) (err error) {
	s, err := dev.NewStream("program", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	over, err := dev.NewEvent(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, over.Close()) }()
	mem, err := c.Alloc(4096)
	if err != nil {
		return err
	}
	v := mem.As(collective.F32)
	reqs := []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: v}, {Kind: collective.ReduceScatter, Op: collective.Max, Vec: v},
		{Kind: collective.AllGather, Vec: v}, {Kind: collective.Broadcast, Root: 1, Vec: v},
	}
	if err := c.Agree(ctx, reqs); err != nil {
		return err
	}
	for _, req := range reqs {
		if err := collective.Do(ctx, c, req); err != nil {
			return err
		}
		if err := c.Enqueue(s, req); err != nil {
			return err
		}
	}
	if err := s.Record(over); err != nil {
		return err
	}
	if err := c.Await(ctx, over); err != nil {
		return err
	}
	return collective.Do(ctx, c, collective.Request{Kind: collective.Barrier}) // hear of who has failed
}

// play has two ranks that share a GPU go through the scene.
func play(t *testing.T) [2]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	below, err := host.NewLocal(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	var errs [2]error
	var wg sync.WaitGroup
	for r, g := range below {
		wg.Go(func() { errs[r] = scene(ctx, g) })
	}
	wg.Wait()
	for _, g := range below {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	return errs
}

// TestEachCallFails makes each call of the scene fail once, in turn, but of those that ask
// whether something is over, which are as many as there is time for, the first only: a rank
// that knows says which it was, nobody hangs, and nothing is left.
func TestEachCallFails(t *testing.T) {
	m := cudatest.Use(t)
	if errs := play(t); errs != [2]error{} {
		t.Fatal(errs)
	}
	calls := map[string]int{}
	for _, f := range functions(t) {
		if n := m.Calls(f); n > 0 {
			calls[f] = n
		}
	}
	t.Logf("calls: %v", calls)
	if len(calls) < 20 {
		t.Errorf("the scene calls %d functions", len(calls))
	}
	for call, n := range calls {
		if strings.HasSuffix(call, "Query") {
			n = 2
		}
		for i := 1; i <= n; i++ {
			m := cudatest.Use(t) // without the order of before
			m.Fail(call, i, 999)
			errs := play(t)
			e, ok := errors.AsType[*cuda.Error](errors.Join(errs[:]...))
			switch {
			case m.Calls(call) < i: // another rank was slower
			case !ok || e.Code != 999 || e.Call != cmp.Or(first[call], call) || !strings.Contains(fmt.Sprint(errs), e.Call):
				t.Errorf("%s %d of %d failed, and the ranks end with %v", call, i, n, errs)
			case !ends(call) && (errs[0] == nil || errs[1] == nil):
				t.Errorf("%s %d of %d failed, and a rank ends well: %v", call, i, n, errs)
			}
			m.Clean()
		}
	}
}

// first are the calls that stand for one that is made together with them.
var first = map[string]string{"cuMemHostGetDevicePointer_v2": "cuMemHostAlloc", "cuCtxGetStreamPriorityRange": "cuStreamCreateWithPriority"}

// functions are those of the driver, but for what binds threads to a context, which is called
// as often as a goroutine comes to another thread.
func functions(t *testing.T) (names []string) {
	t.Helper()
	text, err := abi.Files.ReadFile("driver.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`X\((cu\w+), \(`).FindAllSubmatch(text, -1) {
		if name := string(m[1]); name != "cuCtxSetCurrent" {
			names = append(names, name)
		}
	}
	return names
}

// ends says whether a function is called by who closes, after the last collective.
func ends(call string) bool {
	return call == "cuStreamSynchronize" || slices.ContainsFunc([]string{"Destroy", "Free", "Release"}, func(s string) bool { return strings.Contains(call, s) })
}

// TestLostIsSaidOnce: a device that is lost in a collective is said by that, and not again by
// who closes.
func TestLostIsSaidOnce(t *testing.T) {
	cudatest.Use(t).Fail("run:cuMemcpyDtoHAsync_v2", 1, 700)
	for r, err := range play(t) {
		if n := strings.Count(fmt.Sprint(err), "CUDA_ERROR_ILLEGAL_ADDRESS"); n != 1 {
			t.Errorf("rank %d says it %d times: %v", r, n, err)
		}
	}
}
