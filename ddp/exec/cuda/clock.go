package cuda

import (
	"context"
	"errors"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
)

// clock are timed events around the launches of a run: each slot has its own, as the run
// behind is queued before the times are read.
type clock struct {
	base  time.Time          // of the host, just before marks[0] was queued on an idle device
	marks []*driver.Event    // before launch i, and after the last
	comms [][2]*driver.Event // around collectives, by number
}

// newClock makes the events for n launches and some collectives.
func (b *Backend) newClock(n, collectives int) (_ *clock, err error) {
	c := &clock{marks: make([]*driver.Event, n+1), comms: make([][2]*driver.Event, collectives)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	for i := range c.marks {
		if c.marks[i], err = b.dev.NewEvent(true); err != nil {
			return nil, err
		}
	}
	for i := range c.comms {
		for k := range c.comms[i] {
			if c.comms[i][k], err = b.dev.NewEvent(true); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *clock) close() error {
	var errs []error
	all := c.marks
	for _, pair := range c.comms {
		all = append(all, pair[:]...)
	}
	for _, e := range all {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// timed does the launches one after the other, with an event between them: replayed, so
// that the host is not what is timed, where nothing but launches is in a run.
func (p *program) timed(f *flight) (err error) {
	if f.slot.clock == nil {
		if f.slot.clock, err = p.b.newClock(len(p.units), len(p.moved)); err != nil {
			return p.named(nil, err)
		}
	}
	clocked := &f.slot.clocked
	replay := p.warm && !p.eager && len(p.moved) == 0
	if replay && clocked.replay == nil {
		mark := func(e *driver.Event) error { return p.b.lanes[0].RecordExternal(e) }
		if err := p.capture(f, clocked, func() error { return p.marked(f, mark) }); err != nil {
			return err
		}
		replay = clocked.replay != nil
	}
	main := p.b.lanes[0]
	if err := main.Sync(f.ctx); err != nil { // what the host calls now is then the device's, too
		return p.named(nil, err)
	}
	f.slot.clock.base = time.Now()
	if replay {
		return p.named(nil, clocked.replay.Launch(main))
	}
	return p.marked(f, main.Record)
}

// marked does the launches with a mark before each, and one after the last.
func (p *program) marked(f *flight, mark func(*driver.Event) error) error {
	marks := f.slot.clock.marks
	if err := errors.Join(mark(marks[0]), p.fork(p.single)); err != nil {
		return p.named(nil, err)
	}
	for i := range p.units {
		u := &p.units[i]
		if err := context.Cause(f.ctx); err != nil {
			return p.named(u, err)
		}
		if err := errors.Join(p.around(f, i), mark(marks[i+1])); err != nil {
			return p.named(u, err)
		}
	}
	return p.named(nil, p.join(p.single))
}

// around does launch i; a collective between its events, and in the first run apart. A
// Wait holds up the rest, so that its time is what is waited.
func (p *program) around(f *flight, i int) error {
	switch op := opOf(p.plan, p.launches[i]).(type) {
	case plan.Start:
		pair := f.slot.clock.comms[op.Number]
		if err := errors.Join(p.behind(p.b.comm, p.single.waits[i]), p.b.comm.Record(pair[0])); err != nil {
			return err
		}
		do := func() error { return p.unit(p.single, i) }
		if !p.warm {
			do = func() error { return p.apart(f.ctx, p.single, i) }
		}
		return errors.Join(do(), p.b.comm.Record(pair[1]))
	case plan.Wait:
		return p.b.lanes[0].WaitEvent(f.slot.clock.comms[op.Number][1])
	}
	return p.unit(p.single, i)
}

// tell gives the times of a run that is complete to the trace and the statistics.
func (p *program) tell(f *flight) error {
	at, err := f.slot.clock.times(p.b.dev)
	if err != nil {
		return p.named(nil, err)
	}
	for n := range p.units {
		u, from, took := &p.units[n], at[n], at[n+1]-at[n]
		if _, ok := opOf(p.plan, p.launches[n]).(plan.Wait); ok {
			p.stats.CommWait += took
			if f.trace != nil {
				if err := p.tellCollective(f, p.steps[u.steps[0]].travel); err != nil {
					return p.named(u, err)
				}
			}
		}
		for k, share := range p.shares(u, took) {
			p.tellStep(f, u.steps[k], from, share)
			from += share
		}
	}
	return nil
}

// shares are the steps' parts of a launch's time, by the bytes that they move: what each
// took is not known.
func (p *program) shares(u *unit, took time.Duration) []time.Duration {
	bytes, all := make([]int64, len(u.steps)), int64(0)
	for k, i := range u.steps {
		bytes[k] = 1 + p.plan.Traffic(i) // so that not all are 0
		all += bytes[k]
	}
	shares, told := make([]time.Duration, len(u.steps)), time.Duration(0)
	for k := range shares[1:] {
		shares[k] = time.Duration(float64(took) * float64(bytes[k]) / float64(all))
		told += shares[k]
	}
	shares[len(shares)-1] = took - told
	return shares
}

// tellStep tells of step i, which began so long after the first mark.
func (p *program) tellStep(f *flight, i int, began, took time.Duration) {
	s := &p.steps[i]
	if p.profile {
		p.ops[i].Add(took, s.flops)
	}
	if f.trace != nil {
		f.trace(exec.Event{Kind: s.kind, Name: s.op, Scope: s.scope, Start: f.slot.clock.base.Add(began), Time: took, Flops: s.flops, Bytes: p.plan.Traffic(i), Travel: s.travel})
	}
}

// times are when each launch began, and when the last one ended, after the first mark.
func (c *clock) times(dev *driver.Device) ([]time.Duration, error) {
	at := make([]time.Duration, len(c.marks))
	for i := range at[1:] {
		d, err := dev.Elapsed(c.marks[0], c.marks[i+1])
		if err != nil {
			return nil, err
		}
		at[i+1] = max(d, at[i])
	}
	return at, nil
}

// tellCollective tells of a collective as a whole.
func (p *program) tellCollective(f *flight, t *exec.Travel) error {
	c := f.slot.clock
	pair := c.comms[t.Number]
	began, err := p.b.dev.Elapsed(c.marks[0], pair[0])
	if err != nil {
		return err
	}
	ended, err := p.b.dev.Elapsed(c.marks[0], pair[1])
	if err != nil {
		return err
	}
	began = max(began, 0)
	f.trace(exec.Event{Kind: exec.Collective, Name: t.Label, Start: c.base.Add(began), Time: max(ended-began, 0), Bytes: p.moved[t.Number], Travel: t})
	return nil
}
