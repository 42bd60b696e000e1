package host_test

import (
	"errors"
	"sync"
	"testing"

	"ebtrain/collective/colltest"
	"ebtrain/collective/host"
)

// TestRank: what the suite has for ranks that are processes.
func TestRank(t *testing.T) {
	for _, n := range []int{1, 3} {
		comms, err := host.NewLocal(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		errs := make([]error, n)
		var wg sync.WaitGroup
		for r, c := range comms {
			wg.Go(func() { errs[r] = errors.Join(colltest.Rank(c, colltest.Factory{}), c.Close()) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
}
