package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/host"
	"ebtrain/collective/processors"
	"ebtrain/collective/timing"
	"ebtrain/launch/cliflag"
)

// sizes are those at which collectives are timed, in bytes: of batch norm's few
// channels, and of a bucket of gradients.
var sizes = []int{256, 4 << 10, 32 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20}

// timeCollectives times all-reduces of every number of ranks; when says when.
// Where all ranks are on one host, each is taken for a host, too: that costs what TCP
// costs here, without a network.
func (b *bench) timeCollectives(ctx context.Context, when string) error {
	if b.o.fitTime == 0 || b.w.Size() == 1 {
		return nil
	}
	done := map[int]bool{1: true}
	for _, c := range b.r.Cases {
		if done[c.Ranks] {
			continue
		}
		done[c.Ranks] = true
		b.w.Tell(0, fmt.Sprintf("time collectives of %d ranks", c.Ranks))
		if err := b.keep(b.timeGroup(ctx, b.groups[c.Ranks], c.Ranks, "auto", sizes, 0)); err != nil {
			return err
		}
		if len(c.OnHosts) > 1 {
			continue
		}
		apart, err := b.w.First(ctx, c.Ranks, fmt.Sprintf("%d ranks apart, %s", c.Ranks, when), true)
		if err != nil {
			return err
		}
		err = b.keep(b.timeGroup(ctx, apart, c.Ranks, "tcp", sizes, 0))
		if apart != nil {
			err = errors.Join(err, apart.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep adds what was timed to the report.
func (b *bench) keep(r cost.Report, err error) error {
	if err == nil {
		b.r.Collectives = append(b.r.Collectives, r)
	}
	return err
}

// timeGroup times all-reduces of a group, of which this rank is none if g is nil, before
// each of which ranks compute for a while. All ranks call it, and those that are none
// sleep until it is over.
func (b *bench) timeGroup(ctx context.Context, g *host.Comm, ranks int, network string, sizes []int, compute time.Duration) (cost.Report, error) {
	var r cost.Report
	if g != nil {
		r = b.about(g, ranks, network, compute)
		var err error
		if r.Sizes, err = b.timeSizes(ctx, g, ranks, sizes, compute); err != nil {
			return r, err
		}
	}
	all, err := gather(ctx, b.w.Comm, r)
	if err != nil {
		return r, err
	}
	return all[0], nil
}

// about is what a report says of the group that is timed.
func (b *bench) about(g *host.Comm, ranks int, network string, compute time.Duration) cost.Report {
	hosts := make([]string, ranks)
	for i, h := range g.Hosts() {
		hosts[i] = fmt.Sprint(h)
	}
	return cost.Report{Version: cost.Version, Collective: collective.AllReduce.String(), Type: collective.F32.String(), Op: collective.Sum.String(), Memory: "alloc",
		World: ranks, Ranks: onHosts(hosts), Machines: len(onHosts(b.r.Hosts[:ranks])), Network: network, Compute: float64(compute) / 1e3,
		Begun: time.Now().UTC(), Program: cliflag.Version("bench"), CPUs: b.r.Cores, Load: processors.Load()}
}

// timeSizes times vectors of so many bytes, the smallest first, until one takes too long.
func (b *bench) timeSizes(ctx context.Context, g *host.Comm, ranks int, sizes []int, compute time.Duration) (timed []cost.Size, err error) {
	whole := func(bytes int) int { return bytes / (4 * ranks) * (4 * ranks) } // of as many elements for each rank
	mem, err := g.Alloc(whole(slices.Max(sizes)))
	if err != nil {
		return nil, err
	}
	plan := timing.Plan{Kind: collective.AllReduce, Op: collective.Sum, Type: collective.F32, Iters: 1000, MaxTime: b.o.fitTime, Compute: compute}
	for _, n := range sizes {
		s, err := timing.Measure(ctx, g, plan, mem.Slice(0, whole(n)))
		if err != nil {
			return timed, err
		}
		if s.Wrong > 0 {
			return timed, fmt.Errorf("%d elements of an all-reduce of %d bytes were wrong", s.Wrong, n)
		}
		timed = append(timed, s)
		if over, err := tooLong(ctx, g, s, b.o.fitTime); err != nil || over {
			return timed, err
		}
	}
	return timed, nil
}

// tooLong says, on all ranks of a group what its rank 0 finds, whether a size took so
// much longer than --fit-time that larger ones would keep everybody.
func tooLong(ctx context.Context, g *host.Comm, s cost.Size, limit time.Duration) (bool, error) {
	const much = 4
	v := []int32{0}
	if s.Median*timing.Fewest > much*float64(limit.Microseconds()) {
		v[0] = 1
	}
	err := collective.Do(ctx, g, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(v), Label: "larger ones?"})
	return v[0] == 1, err
}

// changed is a sentence if collectives took other times before the steps than after
// them: more than a quarter, at most sizes.
func (r *Report) changed() string {
	const much = 1.25
	half := len(r.Collectives) / 2
	n, other := 0, 0
	for i := range half {
		later := r.Collectives[half+i].Sizes
		for k, s := range r.Collectives[i].Sizes[:min(len(r.Collectives[i].Sizes), len(later))] {
			ratio := later[k].Median / s.Median
			if n++; ratio > much || ratio < 1/much {
				other++
			}
		}
	}
	if n == 0 || 2*other <= n {
		return ""
	}
	return fmt.Sprintf("collectives took other times after the steps than before, by more than a quarter at %d of %d sizes: the links or the machine changed, so measure again when it is quiet", other, n)
}
