package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/collective/simulate"
)

// What a wait costs where ranks share processors has two parts. Time of a processor is
// what a rank needs to be woken, and to find its caches as others left them: ranks that
// wake together have shares of it. A delay passes, whatever others do: a timer of the
// kernel, or a link that is served late. How long steps of groups side by side take does
// not tell them apart, since groups that wait for links most of the time hardly meet. The
// processor time that ranks had does.

// fitWaits finds what a wait costs where ranks share processors: with it, groups that
// train side by side have as much of processors in the simulation as they had, and take
// as long as they did.
func (p *player) fitWaits(ctx context.Context) error {
	base := p.r.widest()
	if base < 0 {
		return nil
	}
	for _, o := range p.r.Beside {
		if o.Step == 0 { // of a report that does not know
			continue
		}
		w, err := p.newWaits(ctx, o, p.r.Cases[base])
		if err != nil {
			return err
		}
		if err := w.fit(ctx); err != nil {
			return err
		}
		o.Wake, o.Delay = round(w.wake, 3), round(w.delay, 3)
	}
	return nil
}

// waits is a fit of what a wait costs to groups side by side.
type waits struct {
	play        func(ctx context.Context, wake, delay float64) (median, woken float64, err error)
	step        float64 // that was measured
	more        float64 // of processors that a rank had in a step, beyond what is played without a cost of waits; infinite if it is not known
	wake, delay float64
}

// newWaits is the fit of groups that each are as a case.
func (p *player) newWaits(ctx context.Context, o *Beside, of *Case) (*waits, error) {
	c := p.cluster(of)
	c.Beside, c.Others = o.Ranks/o.Group, o.Others/float64(p.r.Threads)
	step := p.events(o.Batch/o.Group, true)
	w := &waits{step: o.Step, more: math.Inf(1)}
	w.play = func(ctx context.Context, wake, delay float64) (float64, float64, error) {
		c := c
		c.Wake, c.Delay = wake, delay
		s, err := p.play(ctx, c, step, steps)
		return s.Median, s.Woken, err
	}
	seen := p.r.seen(o)
	if seen == 0 {
		return w, nil
	}
	s, err := simulate.Run(ctx, c, step, simulate.Noise{}, steps, p.r.Seed) // without noise, as what is seen is a median
	w.more = max(0, seen-s.Processor)
	return w, err
}

// seen is the processor time that a rank of groups side by side had in a step; 0 if that
// says nothing. Two times are known: one has what ranks look for while nobody else wants
// their processors, and the other what is fetched anew after busy threads have filled the
// caches. Neither is too short.
func (r *Report) seen(o *Beside) float64 {
	switch {
	case r.Threads > 1: // a rank of a simulation computes with all its threads or none
		return 0
	case r.AmongBusy == 0 || o.Busy == 0:
		return max(r.AmongBusy, o.Busy)
	}
	return min(r.AmongBusy, o.Busy)
}

// agree is how often the number of waits after which a rank is woken is looked at again:
// it depends a little on what they cost.
const agree = 4

// tiny is a difference of costs that is none, in microseconds.
const tiny = 1e-3

// fit finds the time of a processor that a wait costs: what was seen, shared among the
// waits after which a rank is woken, but no more than explains the whole step. Delay is
// what is left to explain.
func (w *waits) fit(ctx context.Context) error {
	most, err := w.bisect(ctx, func(x float64) (wake, delay float64) { return x, 0 })
	if err != nil {
		return err
	}
	w.wake, w.delay = most, 0
	for range agree {
		_, woken, err := w.play(ctx, w.wake, w.delay)
		if err != nil {
			return err
		}
		if w.more >= most*woken {
			w.wake, w.delay = most, 0
			return nil
		}
		if math.Abs(w.wake-w.more/woken) < tiny {
			return nil
		}
		w.wake = w.more / woken
		if w.delay, err = w.bisect(ctx, func(x float64) (wake, delay float64) { return w.wake, x }); err != nil {
			return err
		}
	}
	return nil
}

// bisections leave a ten-millionth of a step.
const bisections = 24

// bisect is the cost with which a step takes as long as was measured.
func (w *waits) bisect(ctx context.Context, costs func(float64) (wake, delay float64)) (float64, error) {
	low, high := 0.0, w.step
	for range bisections {
		middle := (low + high) / 2
		wake, delay := costs(middle)
		median, _, err := w.play(ctx, wake, delay)
		if err != nil {
			return 0, err
		}
		if median < w.step {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// wait is what a wait costs ranks of a case that share processors, by the nearest number
// of ranks of which that was measured; nothing if it was not.
func (r *Report) wait(c *Case) (wake, delay float64) {
	for i, o := range r.Beside { // the fewest first
		if i == 0 || o.Ranks <= c.Ranks {
			wake, delay = o.Wake, o.Delay
		}
	}
	return wake, delay
}

// checkWaits is an error if what is known of groups side by side cannot be.
func (r *Report) checkWaits() error {
	for _, o := range r.Beside {
		if o == nil {
			return errors.New("one of its groups side by side is null, expected an object")
		}
		for _, v := range []struct {
			name string
			us   float64
		}{{"step_us", o.Step}, {"processor_us", o.Busy}, {"others", o.Others}, {"wake_us", o.Wake}, {"delay_us", o.Delay}} {
			if !(v.us >= 0) || math.IsInf(v.us, 0) {
				return fmt.Errorf("%s of %d ranks side by side is %v, expected a number of 0 or more", v.name, o.Ranks, v.us)
			}
		}
		if o.Group < 2 || o.Ranks < o.Group || o.Batch < o.Group {
			return fmt.Errorf("%d ranks side by side are groups of %d with a batch of %d, expected groups of 2 at least and a sample for each rank", o.Ranks, o.Group, o.Batch)
		}
	}
	if !(r.AmongBusy >= 0) || math.IsInf(r.AmongBusy, 0) {
		return fmt.Errorf("processor_among_busy_us is %v, expected a number of 0 or more", r.AmongBusy)
	}
	return nil
}
