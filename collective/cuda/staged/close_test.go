//go:build cgo

package staged_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/cuda/staged"
)

// limit is how long closing may take on any machine: it waits for the GPU if it takes longer.
const limit = 30 * time.Second

// TestCloseGivesUp: where the GPU does not come to the end of a collective that was ended, Close
// says so after its patience; what is left keeps the context of a device that is closed, and is
// released in it if the end comes after all.
func TestCloseGivesUp(t *testing.T) {
	m := cudatest.Use(t)
	members := group(t, 2, options)
	m.Slow("run:cuMemcpyDtoHAsync_v2", 1, 2*limit)
	ends := make(chan error, 2)
	for _, x := range members {
		go func() {
			mem, err := x.Alloc(4096)
			if err == nil {
				err = collective.Do(t.Context(), x, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32)})
			}
			ends <- err
		}()
	}
	for m.Calls("run:cuMemcpyDtoHAsync_v2") == 0 {
		time.Sleep(time.Millisecond)
	}
	members[0].Abort(errors.New("enough"))
	for range members {
		if err := <-ends; !errors.Is(err, collective.ErrAborted) {
			t.Errorf("got %v, want an abort", err)
		}
	}
	began, late := time.Now(), 0
	for r, x := range members {
		members[r] = nil
		staged.SetPatience(x.Comm, 50*time.Millisecond)
		err := x.Close()
		if err != nil && !strings.Contains(err.Error(), "staged: the GPU has not come to the end of what is queued for collectives within 50ms: it hangs, and what the group holds on it is lost until the process ends") {
			t.Errorf("it closed with %v", err)
		}
		if err != nil {
			late++
		}
		if err := errors.Join(x.memory.Close(), x.dev.Close(), x.below.Close()); err != nil {
			t.Error(err)
		}
	}
	// The ranks share the GPU, so freeing waits for it on either.
	if took := time.Since(began); took > limit || late == 0 || m.Live("contexts") != late {
		t.Errorf("closing took %v, %d ranks gave up, %d contexts are left, want those of the ranks that did", took, late, m.Live("contexts"))
	}
	m.Wake()
	for deadline := time.Now().Add(10 * time.Second); m.Live("contexts") > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	m.Clean()
}
