package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ebtrain/collective/simulate"
)

// losses are what a step takes beside its share of what one rank would compute and load
// with all samples, the largest first. own is what a rank computes and loads. Shares are
// of the time that ranks have in the median step, in the mean: from the last rank's end
// to the last rank's end it may be less, since the others have begun before.
func losses(r simulate.Result, own, ideal float64) []Loss {
	var all []Loss
	whole := r.Compute + r.ExposedUS() + r.Slowest
	add := func(name string, us float64) {
		if us > 0 {
			all = append(all, Loss{name, us, us / whole})
		}
	}
	for _, e := range r.Exposed {
		add("waiting for all-reduces of "+e.Label, e.US)
	}
	add("waiting for the slowest rank", r.Slowest)
	add("computing longer, beside collectives or by chance", r.Compute-own)
	add("computing that a smaller batch does not save", min(own, r.Compute)-ideal)
	slices.SortStableFunc(all, func(a, b Loss) int { return cmp.Compare(b.US, a.US) })
	return all
}

// little is the share of a step that is not worth a sentence.
const little = 0.01

// small is the largest vector whose all-reduce simulate takes for a small one.
const small = 64 << 10

// remedies are what removing each cost would give, the most first.
func (p *player) remedies(ctx context.Context, c simulate.Cluster, s simulate.Step, of Prediction, ideal float64) ([]Remedy, error) {
	all := make([]Remedy, len(simulate.Costs)+1)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		g.Go(func() error {
			if i == len(simulate.Costs) { // data
				without := p.events(of.Batch/of.Ranks, false)
				r, err := p.play(ctx, c, without, stepsFor(of.Ranks))
				all[i] = remedy("data", dataAdvice, of, r, ideal)
				return err
			}
			what := simulate.Costs[i]
			r, err := simulate.Without(ctx, what, c, s, simulate.Noise{Ratios: p.basis.Noise}, stepsFor(of.Ranks), p.r.Seed)
			all[i] = remedy(nameOf(what), p.advice(what, s), of, r, ideal)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Remedy) int { return cmp.Compare(b.Share, a.Share) })
	return all, nil
}

func remedy(name, advice string, of Prediction, r simulate.Result, ideal float64) Remedy {
	m := Remedy{Cost: name, US: r.Median, Share: 1 - r.Median/of.Result.Median, Efficiency: ideal / r.Median}
	if m.Share >= little {
		m.Say = fmt.Sprintf("At %s a step would be %.0f %% shorter (efficiency %.3f, not %.3f) without %s.", of.who(), 100*m.Share, m.Efficiency, of.Efficiency.Value, advice)
	}
	return m
}

const dataAdvice = "waiting for data: load more batches ahead (--prefetch), or keep the shards on a faster disk"

func nameOf(c simulate.Cost) string {
	return map[simulate.Cost]string{
		simulate.SmallLatency: "latency of small collectives", simulate.LargeLatency: "latency of large collectives", simulate.Bandwidth: "bandwidth between hosts",
		simulate.Memory: "copies in memory", simulate.Reduction: "adding", simulate.Stragglers: "stragglers",
	}[c]
}

// advice says what a cost is and what is known to make it less.
func (p *player) advice(c simulate.Cost, s simulate.Step) string {
	switch c {
	case simulate.SmallLatency:
		return fmt.Sprintf("the latency of %s: join several into one, or give each rank more samples, over which it is spread", p.smallOnes(s))
	case simulate.LargeLatency:
		return "the latency of large all-reduces: use fewer and larger buckets, or more ranks on each host"
	case simulate.Bandwidth:
		return "the bandwidth between hosts: use a faster link, more ranks on each host, or more samples for each rank"
	case simulate.Memory:
		return "copying between the ranks of a host: use fewer ranks of more threads each, or hosts with more memory bandwidth"
	case simulate.Reduction:
		return "adding gradients: use fewer ranks of more threads each on a host"
	case simulate.Stragglers:
		return "waiting for whichever rank is slowest in that step: give training hosts of its own, and each rank processors of its own"
	}
	return nameOf(c)
}

// smallOnes is "40 small all-reduces (38 of batch norm, 2 of losses)".
func (p *player) smallOnes(s simulate.Step) string {
	count, n := map[string]int{}, 0
	var labels []string
	for _, e := range s.Events {
		if e.Kind == simulate.Start && e.Bytes <= small {
			if count[e.Label]++; count[e.Label] == 1 {
				labels = append(labels, e.Label)
			}
			n++
		}
	}
	slices.SortStableFunc(labels, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	const shown = 3
	var parts []string
	for _, l := range labels[:min(shown, len(labels))] {
		parts = append(parts, fmt.Sprintf("%d of %s", count[l], l))
	}
	return fmt.Sprintf("%d small all-reduces (%s)", n, strings.Join(parts, ", "))
}
