package host_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// TestCollectivesAllocateNothing runs every collective, small and large, in
// memory from Alloc and elsewhere, one by one and several at a time, and counts
// what all ranks allocate once everything is warm. The runtime may have some
// objects for itself (a thread that it starts has a dozen): one for 50
// collectives. What one kind of collective allocated would be at least five.
func TestCollectivesAllocateNothing(t *testing.T) {
	for _, test := range []struct {
		ranks int
		hosts string
	}{{2, "1"}, {4, "1"}, {9, "1"}, {2, "2"}, {2, "2t"}, {4, "2i"}, {5, "5g"}} {
		if testing.Short() && test.ranks != 2 && test.hosts != "2i" {
			continue
		}
		t.Run(fmt.Sprintf("ranks=%d/hosts=%s", test.ranks, test.hosts), func(t *testing.T) {
			const rounds, settled = 30, 10
			comms := group(t, test.ranks, as(test.hosts, host.Config{Hosts: pretend(test.hosts, test.ranks), ListenIP: "127.0.0.1",
				Progress: func(uint64, collective.Request) {}}))
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects of its own
			var before, after runtime.MemStats
			var perRound int
			var wg sync.WaitGroup
			counted := make(chan struct{}) // who leaves earlier has the others write why
			for _, c := range comms {
				wg.Go(func() {
					defer shut(t, c)
					if c.Rank() == 0 {
						defer close(counted)
					} else {
						defer func() { <-counted }()
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					reqs, err := everyCollective(c)
					if err != nil {
						t.Error(err)
						return
					}
					pending := make([]collective.Pending, len(reqs))
					repeat := func(rounds int) {
						for range rounds {
							if err := roundOf(ctx, c, reqs, pending); err != nil {
								t.Error(err)
							}
						}
					}
					repeat(settled)
					if c.Rank() == 0 {
						perRound = 2*len(reqs) + 1
						runtime.ReadMemStats(&before)
					}
					repeat(rounds)
					if c.Rank() == 0 {
						runtime.ReadMemStats(&after)
					}
				})
			}
			wg.Wait()
			n, all := int(after.Mallocs-before.Mallocs), rounds*perRound*test.ranks
			t.Logf("%d objects for %d collectives", n, all)
			if n > all/50 {
				t.Errorf("%d objects were allocated for %d collectives, want at most %d", n, all, all/50)
			}
		})
	}
}

// roundOf is one of everything: each by itself, then all under way at a time,
// then a barrier, after which no rank is in the round before.
func roundOf(ctx context.Context, c collective.Comm, reqs []collective.Request, pending []collective.Pending) error {
	for _, req := range reqs {
		if err := collective.Do(ctx, c, req); err != nil {
			return err
		}
	}
	for i, req := range reqs {
		pending[i] = c.Start(req)
	}
	for _, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return collective.Do(ctx, c, collective.Request{Kind: collective.Barrier, Label: "round"})
}

func everyCollective(c collective.Comm) ([]collective.Request, error) {
	reqs := []collective.Request{{Kind: collective.Barrier, Label: "barrier"}}
	for _, n := range []int{10, 5_000, 300_000} { // of float32: small, in one piece, and in several
		if n > 100_000 && (c.Size() > 2 || testing.Short()) {
			continue
		}
		n = n / c.Size() * c.Size()
		mem, err := c.Alloc(4 * n)
		if err != nil {
			return nil, err
		}
		vecs := []collective.Vec{collective.VecOf(make([]float32, n)), mem.As(collective.F32)}
		if n < 1000 {
			vecs = append(vecs, collective.VecBF16(make([]uint16, n)), collective.VecOf(make([]int64, n)))
		}
		for _, v := range vecs {
			reqs = append(reqs,
				collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: v, Label: "all-reduce"},
				collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: v, Label: "largest"},
				collective.Request{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: v, Label: "reduce-scatter"},
				collective.Request{Kind: collective.AllGather, Vec: v, Label: "all-gather"},
				collective.Request{Kind: collective.Broadcast, Root: c.Size() - 1, Vec: v, Label: "broadcast"})
		}
	}
	return reqs, nil
}
