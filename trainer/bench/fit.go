package main

import (
	"context"
	"fmt"
	"slices"

	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
)

// fit makes the model of the collectives, and says what it cannot know.
func (r *Report) fit() error {
	if len(r.Hosts) == 1 {
		r.Unmeasured = append(r.Unmeasured, "One rank was measured alone: what more ranks would do is not known. Start two or more (bench -nproc 2 …).")
		return nil
	}
	if len(r.Collectives) == 0 {
		return nil
	}
	var fitted []cost.Report
	for _, c := range r.Collectives {
		if c.World <= r.FitUpTo {
			fitted = append(fitted, c)
		}
	}
	if len(fitted) == 0 || r.basis() == nil {
		r.Unmeasured = append(r.Unmeasured, fmt.Sprintf("Nothing is predicted: no group of 2 to %d ranks was measured whose collectives a trace shows.", r.FitUpTo))
		return nil
	}
	model, err := simulate.Fit(fitted)
	if err != nil {
		return err
	}
	if doubt := r.changed(); doubt != "" {
		model.Doubts = append(model.Doubts, doubt)
	}
	r.Model = &model
	if err := r.fitBusy(); err != nil {
		return err
	}
	if r.Sharded {
		r.Unmeasured = append(r.Unmeasured, "How much less a rank of more ranks has to update was not measured: predictions keep what the measured ranks had, since a trace does not say which computing is the optimisers'.")
	}
	if len(onHosts(r.Hosts)) == 1 {
		r.Unmeasured = append(r.Unmeasured, "No network was measured: all ranks are on one host. Between hosts, predictions have what TCP costs on this host's loopback, where --link-gbit and --link-us do not say what yours has.")
	}
	return nil
}

// basis is the case whose step is played: the largest that is fitted on and has a
// processor for each thread, or the smallest of several ranks; those of weak scaling
// first, whose ranks have the batch that is predicted. Nil if there is none.
func (r *Report) basis() *Case {
	var best *Case
	better := func(c *Case) bool {
		switch {
		case best == nil:
			return true
		case r.crowded(c) != r.crowded(best):
			return r.crowded(best)
		case c.Weak != best.Weak:
			return c.Weak
		}
		return !r.crowded(c)
	}
	for _, c := range r.Cases {
		if c.Ranks > 1 && c.Ranks <= r.FitUpTo && len(c.Events) > 0 && better(c) {
			best = c
		}
	}
	return best
}

// compute is the time that a rank computes with a batch of its own of that size, on
// processors that it has alone.
func (r *Report) compute(batch float64) float64 {
	fixed, each, _ := r.line()
	return fixed + each*batch
}

// own is what a rank of a case computes where nobody else has its processor: no longer
// than it had one at all, of which a little was for waiting.
func (c *Case) own() float64 {
	if c.Busy > 0 { // 0 of a report that does not know
		return min(c.Compute, c.Busy)
	}
	return c.Compute
}

// line is what a rank computes whatever its batch, and for each sample: least squares
// through the cases that are fitted on and have processors enough. Where they have one
// size, or the part for no samples were negative, it is in proportion to the batch.
func (r *Report) line() (fixed, each float64, batches []int) {
	var n, x, y, xx, xy float64
	for _, c := range r.Cases {
		if c.Ranks <= r.FitUpTo && !r.crowded(c) {
			b, own := float64(c.Batch)/float64(c.Ranks), c.own()
			n, x, y, xx, xy = n+1, x+b, y+own, xx+b*b, xy+b*own
			if !slices.Contains(batches, c.Batch/c.Ranks) {
				batches = append(batches, c.Batch/c.Ranks)
			}
		}
	}
	slices.Sort(batches)
	if det := n*xx - x*x; det > 1e-9*n*xx {
		fixed, each = (xx*y-x*xy)/det, (n*xy-x*y)/det
		if fixed >= 0 && each >= 0 {
			return fixed, each, batches
		}
	}
	c := r.basis()
	return 0, c.own() / (float64(c.Batch) / float64(c.Ranks)), nil
}

// player plays the step of a report.
type player struct {
	r     *Report
	basis *Case
	links links
	model cost.Model // with the links
	scale float64    // of what was traced, so that the basis computes for as long as was measured
}

// steps that are played where it costs little.
const steps = 40

// newPlayer fits the computing time of a step, which includes what collectives delay it
// on the same processors.
func newPlayer(ctx context.Context, r *Report, o *options) (*player, error) {
	p := &player{r: r, basis: r.basis(), model: *r.Model, scale: 1}
	p.scale = p.basis.own() / computeOf(p.basis.Events)
	const rounds = 4
	for range rounds {
		s, err := p.play(ctx, p.cluster(p.basis), p.events(p.basis.Batch/p.basis.Ranks, true), steps)
		if err != nil {
			return nil, err
		}
		p.scale *= p.basis.own() / (s.Compute - p.basis.Data)
	}
	if err := p.fitWaits(ctx); err != nil {
		return nil, err
	}
	p.links = links{gbit: o.linkGbit, us: o.linkUS}
	p.model = p.links.of(*r.Model)
	return p, nil
}

// links are what the network between hosts is to be, 0 for as it was measured.
type links struct{ gbit, us float64 }

// of is a model with these links.
func (l links) of(m cost.Model) cost.Model {
	if l.gbit > 0 {
		ns := 8 / l.gbit
		m.Between.PerByte = cost.Interval{Value: ns, Low: ns, High: ns}
	}
	if l.us > 0 {
		m.Between.Latency = cost.Interval{Value: l.us, Low: l.us, High: l.us}
	}
	return m
}

func (p *player) play(ctx context.Context, c simulate.Cluster, s simulate.Step, steps int) (simulate.Result, error) {
	return simulate.Run(ctx, c, s, simulate.Noise{Ratios: p.basis.Noise}, steps, p.r.Seed)
}

// events is a step of a rank that has so many samples. It begins with waiting for data,
// which is played as computing, if that is asked for.
func (p *player) events(batch int, data bool) simulate.Step {
	factor := p.scale
	if own := p.basis.Batch / p.basis.Ranks; own != batch {
		factor *= p.r.compute(float64(batch)) / p.r.compute(float64(own))
	}
	var s simulate.Step
	if data {
		s.Events = append(s.Events, simulate.Event{Kind: simulate.Compute, US: p.basis.Data})
	}
	for _, e := range p.basis.Events {
		e.US *= factor
		s.Events = append(s.Events, e)
	}
	return s
}
