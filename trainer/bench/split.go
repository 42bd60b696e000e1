package main

import (
	"math"
	"slices"

	"ebtrain/collective/cost"
)

// split is a step of all ranks together: the means over ranks, in microseconds.
type split struct {
	compute, exposed, data, slowest float64
	busy                            float64   // time of processors
	slow                            int       // the rank that the others waited for
	each                            []float64 // what each rank computed
}

// splitsOf are the steps of which ranks, by rank and step, have told their parts. All
// ranks need the same time for a step, so whoever loads and computes longer than others
// makes each wait for the difference. What a rank waits for collectives beyond that, it
// would wait among equals: exposed communication.
func splitsOf(ranks [][]parts) []split {
	out := make([]split, len(ranks[0]))
	for i := range out {
		s := &out[i]
		var comm, middle float64
		longest := math.Inf(-1)
		for r := range ranks {
			p := ranks[r][i]
			s.each = append(s.each, p.Compute)
			n, own := float64(len(ranks)), p.Compute+p.Data
			if own > longest {
				longest, s.slow = own, r
			}
			middle += own / n
			s.compute, comm, s.data = s.compute+p.Compute/n, comm+p.Comm/n, s.data+p.Data/n
			s.busy += p.Busy / n
		}
		s.slowest = min(longest-middle, comm)
		s.exposed = comm - s.slowest
	}
	return out
}

// most is how many ratios of a case a report keeps.
const most = 4096

// add takes over the steps of a turn.
func (c *Case) add(splits []split) {
	c.splits = append(c.splits, splits...)
	var all []float64
	for _, s := range splits {
		all = append(all, s.each...)
	}
	middle := medianOf(all).Value
	for _, x := range all {
		if len(c.Noise) < most {
			c.Noise = append(c.Noise, round(x/middle, 5))
		}
	}
}

// took counts what others had of the processors in a turn.
func (c *Case) took(t turn) {
	c.others, c.lasts = c.others+t.others, c.lasts+t.lasted
	c.Others = round(max(0, c.others/c.lasts), 3)
}

// summarise makes the numbers of a report of what was measured.
func (r *Report) summarise() {
	for _, c := range r.Cases {
		c.summarise()
		if base := r.base(func(c *Case) bool { return c.Strong }); c.Strong && base != c {
			c.StrongEfficiency = efficiency(c, base)
		}
		if base := r.base(func(c *Case) bool { return c.Weak }); c.Weak && base != c {
			c.WeakEfficiency = efficiency(c, base)
		}
	}
	for _, o := range r.Beside {
		o.summarise()
	}
	if len(r.among) > 0 {
		r.AmongBusy = medianOf(r.among).Value
	}
}

// summarise makes the numbers of a case.
func (c *Case) summarise() {
	c.Step = medianOf(c.Turns)
	images := func(us float64) float64 { return float64(c.Batch) * 1e6 / us }
	c.Images = cost.Interval{Value: images(c.Step.Value), Low: images(c.Step.High), High: images(c.Step.Low)}
	middle := func(of func(split) float64) float64 {
		var v []float64
		for _, s := range c.splits {
			v = append(v, of(s))
		}
		return medianOf(v).Value
	}
	c.Compute = middle(func(s split) float64 { return s.compute })
	c.Exposed = middle(func(s split) float64 { return s.exposed })
	c.Data = middle(func(s split) float64 { return s.data })
	c.Slowest = middle(func(s split) float64 { return s.slowest })
	c.Busy = middle(func(s split) float64 { return s.busy })
	if c.Ranks > 1 {
		c.SlowestShare = make([]float64, c.Ranks)
		for _, s := range c.splits {
			c.SlowestShare[s.slow] += 1 / float64(len(c.splits))
		}
	}
}

// base is the case of the fewest ranks among those, nil if there is none.
func (r *Report) base(among func(*Case) bool) *Case {
	if i := slices.IndexFunc(r.Cases, among); i >= 0 {
		return r.Cases[i]
	}
	return nil
}

// efficiency is images/s of a rank over base's, round by round: what disturbs both in a
// round cancels.
func efficiency(c, base *Case) *cost.Interval {
	v := make([]float64, len(c.Turns))
	for i := range v {
		v[i] = float64(c.Batch) / float64(c.Ranks) / c.Turns[i] / (float64(base.Batch) / float64(base.Ranks) / base.Turns[i])
	}
	m := medianOf(v)
	return &m
}

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}
