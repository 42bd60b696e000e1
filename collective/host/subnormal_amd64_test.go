//go:build !noasm

package host_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/collective/subnormal"
)

// TestSubnormals: whether subnormal numbers count as zeros in a sum is decided where it is
// started, not by who adds up: the runner's own goroutine, where the caller computes on, or
// a caller that waits. On one host and on two, of what every rank adds up for itself and of
// what they share out.
func TestSubnormals(t *testing.T) {
	for _, hosts := range []string{"1", "2"} {
		for _, n := range []int{1, 1 << 16} {
			for _, computes := range []bool{false, true} {
				for _, zeros := range []bool{false, true} {
					t.Run(fmt.Sprintf("hosts=%s/n=%d/computes=%v/zeros=%v", hosts, n, computes, zeros), func(t *testing.T) {
						subnormalSums(t, hosts, n, computes, zeros)
					})
				}
			}
		}
	}
}

func subnormalSums(t *testing.T, hosts string, n int, computes, zeros bool) {
	least := math.Float32frombits(1 << 23)                 // the smallest normal number
	terms := []float32{1.5 * least, -least, 64 * least, 0} // the first two give half of it
	want := 64.5 * least
	if zeros {
		want = 64 * least
	}
	var ranks sync.WaitGroup
	for rank, c := range group(t, len(terms), host.Config{Hosts: pretend(hosts, len(terms)), ListenIP: "127.0.0.1"}) {
		ranks.Go(func() {
			runtime.LockOSThread() // and never unlocked: what is set ends with the thread
			if zeros {
				subnormal.Flush()
			}
			v := slices.Repeat(terms[rank:rank+1], n)
			p := c.Start(collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Label: "sum", Vec: collective.VecOf(v)})
			if computes {
				time.Sleep(20 * time.Millisecond)
			}
			if err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			for i, got := range v {
				if got != want {
					t.Errorf("rank %d, element %d: %g, want %g", rank, i, got, want)
					return
				}
			}
		})
	}
	ranks.Wait()
}
