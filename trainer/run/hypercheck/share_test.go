package hypercheck

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// Ranks look along all directions between them, whatever their number, and of all that
// they see the worst counts: so a gradient that is wrong is as wrong on each number of
// ranks, and with more directions no less.
func TestRanksShareDirections(t *testing.T) {
	const most = 6
	worst := func(ranks, directions int) float64 {
		t.Helper()
		comms, err := host.NewLocal(t.Context(), ranks)
		if err != nil {
			t.Fatal(err)
		}
		found, errs := make([]float64, ranks), make([]error, ranks)
		var wg sync.WaitGroup
		for r, comm := range comms {
			wg.Go(func() {
				c := check(toy{steps: 2, size: 3, fault: direct})
				c.Comm, c.Directions = comm, directions
				var table *Table
				if table, errs[r] = Run(t.Context(), c); errs[r] == nil {
					found[r] = table.Networks[0].Differences
				}
			})
		}
		wg.Wait()
		for _, comm := range comms {
			errs = append(errs, comm.Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return found[ranks-1]
	}
	before := 0.0
	rises := 0
	for directions := 1; directions <= most; directions++ {
		want := worst(2, directions)
		if want < before-1e-6 {
			t.Errorf("%d directions differ by %v, one less by %v", directions, want, before)
		}
		if want > before+1e-6 {
			rises++
		}
		before = want
		for _, ranks := range []int{3, 4} {
			if got := worst(ranks, directions); !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("%d directions differ by %v on %d ranks, by %v on 2", directions, got, ranks, want)
			}
		}
	}
	if rises < 3 {
		t.Errorf("the worst is found %d times in %d directions: this seed shows nothing", rises, most)
	}
}

// Ranks whose training before the check has left them different weights are told so.
func TestRanksStartAlike(t *testing.T) {
	errs := ddptest.Ranks(2, func(rank int, comm collective.Comm) error {
		c := check(toy{steps: 2})
		a := exec.NewTensor(graph.T(graph.F32))
		a.SetAt(0, float64(rank))
		m := &machine{check: &c, model: toy{steps: 2}, backend: ref.New(), start: []value{{"front.a", a}}}
		return m.agree(t.Context(), comm)
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "variable front.a") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
