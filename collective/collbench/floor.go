package main

import (
	"context"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/host"
	"ebtrain/collective/schedule"
	"ebtrain/collective/timing"
)

// floorOf times the loop of host.Comm.Floor over mem, which all ranks of all hosts
// do at once, each as a thread of its own: the time of each batch is that of the
// slowest rank. No rank waits for another within a batch, before which each has
// written its vector, as before those of measure: what a rank has written must come
// from its cache.
func floorOf(ctx context.Context, p place, opt options, mem collective.Vec) (*cost.Times, error) {
	// Long enough that a rank that leaves the barrier late does not run alone: what
	// the ranks share (memory, or a core) is then not shared.
	const volume = 32 << 20
	b := timing.Batch{Comm: p, Req: collective.Request{Vec: mem}, Inner: min(max(1, volume/len(mem.Bytes())), 10000)}
	return slowest(ctx, p, opt, b, func() error { return p.host.Floor(mem) })
}

// leastBytes are those of the largest vector of which the least is measured. Larger ones
// are not summed by each rank for itself.
const leastBytes = schedule.Small

// leastOf times host.Least over mem, whose ranks wait for each other as those of an
// all-reduce do. Batches are as long as a rank that comes late does not count.
func leastOf(ctx context.Context, p place, opt options, least *host.Least, mem collective.Vec) (*cost.Times, error) {
	b := timing.Batch{Comm: p, Req: collective.Request{Vec: mem}, Inner: 200}
	return slowest(ctx, p, opt, b, func() error { return least.Run(mem) })
}

// slowest times do, on all ranks at once, until rank 0 has seen enough: the time of
// each batch is that of the slowest rank.
func slowest(ctx context.Context, p place, opt options, b timing.Batch, do func() error) (*cost.Times, error) {
	end := time.Now().Add(opt.maxTime)
	var times []float64
	state := make([]float64, 2) // the time of a batch, and 1 when rank 0 has seen enough
	for batch := 0; ; batch++ {
		b.Fill()
		if err := collective.Do(ctx, p.Comm, collective.Request{Kind: collective.Barrier}); err != nil {
			return nil, err
		}
		begin := time.Now()
		for range b.Inner {
			if err := do(); err != nil {
				return nil, err
			}
		}
		state[0], state[1] = time.Since(begin).Seconds()/float64(b.Inner), 0
		if p.Rank() == 0 && (len(times) >= opt.iters || time.Now().After(end) && len(times) >= timing.Fewest) {
			state[1] = 1
		}
		if err := collective.Do(ctx, p.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(state)}); err != nil {
			return nil, err
		}
		if batch > 0 { // the first one maps memory
			times = append(times, state[0])
		}
		if state[1] != 0 && len(times) > 0 {
			return timing.TimesOf(times), nil
		}
	}
}
