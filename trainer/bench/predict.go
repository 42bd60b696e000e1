package main

import (
	"context"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"

	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
)

// Check is a number of ranks that was measured and not fitted on.
type Check struct {
	Ranks     int           `json:"ranks"`
	Batch     int           `json:"batch"`
	Predicted cost.Interval `json:"predicted_us"`
	Measured  cost.Interval `json:"measured_us"`
	Error     float64       `json:"error"` // predicted over measured, less 1
}

// Prediction is a number of ranks that was not measured. Times are in microseconds.
type Prediction struct {
	Ranks   int           `json:"ranks"`
	PerHost int           `json:"ranks_per_host"`
	Batch   int           `json:"batch"`            // over all ranks
	Strong  bool          `json:"strong,omitempty"` // Batch is that of the measured ranks; else each rank's is
	Step    cost.Interval `json:"step_us"`
	// Efficiency is the step that only computes and loads, over the predicted one; of
	// strong scaling, the equal share of one rank's step with the whole batch.
	Efficiency cost.Interval   `json:"efficiency"`
	Result     simulate.Result `json:"result"`
	Losses     []Loss          `json:"losses"` // the largest first
	Remedies   []Remedy        `json:"remedies"`
}

// Loss is what a step takes beside computing and loading.
type Loss struct {
	Name  string  `json:"name"`
	US    float64 `json:"us"`
	Share float64 `json:"share"` // of the time that ranks have in the step
}

// Remedy is what a step would take without one cost.
type Remedy struct {
	Cost       string  `json:"cost"`
	US         float64 `json:"step_us"`
	Share      float64 `json:"share"` // of the step that it saves
	Efficiency float64 `json:"efficiency"`
	Say        string  `json:"say,omitempty"` // what to do; "" where it is too little
}

// draws are the models that are drawn from the intervals of the fitted one, to see what
// difference they make; fewer of large groups, which take long to play.
func draws(ranks int) int {
	const large = 2000
	if ranks > large {
		return 8
	}
	return 16
}

// stepsFor is how many steps of so many ranks are played.
func stepsFor(ranks int) int {
	const work = 10000 // ranks in all steps
	return min(steps, max(5, work/ranks))
}

// extrapolate makes the checks and predictions of a report with a model.
func (r *Report) extrapolate(ctx context.Context, o *options) error {
	if r.Model == nil {
		return nil
	}
	p, err := newPlayer(ctx, r, o)
	if err != nil {
		return err
	}
	if o.check {
		if err := p.checkAll(ctx, r); err != nil {
			return err
		}
	}
	most := r.Cases[len(r.Cases)-1]
	if o.scaling != strong {
		for _, n := range o.predict {
			if err := p.add(ctx, r, n, o.perHost, most.Batch/most.Ranks, false); err != nil {
				return err
			}
		}
	}
	if o.scaling == weak {
		return nil
	}
	for _, n := range o.predict {
		if most.Batch%n != 0 {
			r.Unshared = append(r.Unshared, n)
			continue
		}
		if err := p.add(ctx, r, n, o.perHost, most.Batch/n, true); err != nil {
			return err
		}
	}
	return nil
}

// add adds a prediction.
func (p *player) add(ctx context.Context, r *Report, n, perHost, batch int, strong bool) error {
	one, err := p.predict(ctx, n, perHost, batch, strong)
	r.Predictions = append(r.Predictions, one)
	return err
}

// checkAll predicts what was measured on more ranks than the model is of.
func (p *player) checkAll(ctx context.Context, r *Report) error {
	for _, c := range r.Cases {
		if c.Ranks <= r.FitUpTo {
			continue
		}
		times, _, err := p.vary(ctx, p.cluster(c), p.events(c.Batch/c.Ranks, true), steps)
		if err != nil {
			return err
		}
		r.Checks = append(r.Checks, Check{Ranks: c.Ranks, Batch: c.Batch, Predicted: times, Measured: c.Step, Error: times.Value/c.Step.Value - 1})
	}
	return nil
}

// vary is the median step with the model, and with those drawn from its intervals and
// from that of the measured step; and the efficiency of each.
func (p *player) vary(ctx context.Context, c simulate.Cluster, s simulate.Step, steps int) (step, efficiency cost.Interval, err error) {
	ranks := 0
	for _, n := range c.Ranks {
		ranks += n
	}
	n := draws(ranks) + 1
	times, shares := make([]float64, n), make([]float64, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range times {
		g.Go(func() error {
			c, s := c, s
			if i > 0 {
				c.Costs, s = p.drawn(uint64(i), s)
			}
			r, err := p.play(ctx, c, s, steps)
			times[i], shares[i] = r.Median, computeOf(s.Events)/r.Median
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return step, efficiency, err
	}
	return around(times), around(shares), nil
}

// around is the first of v, which is the estimate, and where 95 % of all are.
func around(v []float64) cost.Interval {
	i := quantiles(v)
	return cost.Interval{Value: v[0], Low: min(i.Low, v[0]), High: max(i.High, v[0])}
}

// drawn is a model and a step: the fitted costs drawn together, each other number from its
// interval. Other links take their places afterwards: what was measured says what two costs
// sum up to, so given the latency of another link it would say what a message costs.
func (p *player) drawn(n uint64, s simulate.Step) (cost.Model, simulate.Step) {
	r := rand.New(rand.NewPCG(p.r.Seed, n))
	const deviations = 1.96 // of a normal distribution, from the middle to the end of its 95 %
	draw := func(i cost.Interval) cost.Interval {
		v := max(0, i.Value+r.NormFloat64()*(i.High-i.Low)/2/deviations)
		return cost.Interval{Value: v, Low: v, High: v}
	}
	m := simulate.Draw(*p.r.Model, r)
	factor := draw(p.basis.Step).Value / p.basis.Step.Value
	m.Between.Busy, m.Between.BusyPerByte = draw(m.Between.Busy), draw(m.Between.BusyPerByte)
	events := make([]simulate.Event, len(s.Events))
	for i, e := range s.Events {
		e.US *= factor
		events[i] = e
	}
	return p.links.of(m), simulate.Step{Events: events}
}

// predict plays n ranks on hosts of so many, each with a batch of its own of that size
// and a processor for each of its threads.
func (p *player) predict(ctx context.Context, n, perHost, batch int, strong bool) (Prediction, error) {
	c := simulate.Cluster{Ranks: simulate.Hosts(n, perHost), Costs: p.model}
	s := p.events(batch, true)
	out := Prediction{Ranks: n, PerHost: perHost, Batch: n * batch, Strong: strong}
	var err error
	if out.Step, out.Efficiency, err = p.vary(ctx, c, s, stepsFor(n)); err != nil {
		return out, err
	}
	if out.Result, err = p.play(ctx, c, s, stepsFor(n)); err != nil {
		return out, err
	}
	own := computeOf(s.Events)
	ideal := own
	if strong { // one rank with all samples does no more for each
		ideal = min(own, computeOf(p.events(out.Batch, true).Events)/float64(n))
	}
	for _, e := range []*float64{&out.Efficiency.Value, &out.Efficiency.Low, &out.Efficiency.High} {
		*e *= ideal / own
	}
	out.Losses = losses(out.Result, own, ideal)
	out.Remedies, err = p.remedies(ctx, c, s, out, ideal)
	out.Result.Steps = nil // many, and the same at the next call
	return out, err
}
