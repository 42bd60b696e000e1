package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "ebtrain/collective/cuda"
)

// patience is how long what is queued may take to end once nothing holds it up.
const patience = 30 * time.Second

// patient is a context that ends after that.
func (b *Backend) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), b.patience, fmt.Errorf("%s has not come to rest within %v", b.who(), b.patience))
}

// sameCause says whether late says no more than err: once the device is lost, every
// call says so.
func sameCause(err, late error) bool {
	e, ok := errors.AsType[*driver.Error](late)
	first, also := errors.AsType[*driver.Error](err)
	return errors.Is(err, late) || ok && also && e.Code == first.Code
}

// enqueue puts a run onto the streams. Where it cannot, the group ends, as the other
// ranks would wait for this one's part, and what is queued is left to end.
func (p *program) enqueue(f *flight) error {
	replays, began := f.slot.plain.replay != nil && !f.timed, time.Now()
	err := p.queueing(func() error { return p.put(f) })
	if err == nil {
		if replays && !f.measured {
			p.replays++
			p.replaying += time.Since(began)
		}
		p.spread = p.spread || p.warm && !f.timed
		p.warm = true
		return nil
	}
	if p.reducing() {
		p.blame(err)
		p.comm.Abort(err)
		err = errors.Join(err, p.forget())
	}
	ctx, cancel := p.b.patient()
	defer cancel()
	for _, l := range append([]*driver.Stream{p.b.comm, p.b.copy}, p.b.lanes...) {
		if late := l.Sync(ctx); late != nil {
			if !sameCause(err, late) {
				err = errors.Join(err, late)
			}
			return err
		}
	}
	return err
}

// queueing is do, which puts work onto the streams, or waits for the device. Collectives that
// hang, its own or those of runs before, hold it up while nobody is in Await: a Comm of which
// that is to be feared sees that it does not last for ever.
func (p *program) queueing(do func() error) error {
	if c, ok := p.comm.(interface{ Queueing(func() error) error }); ok {
		return c.Queueing(do)
	}
	return do()
}

// put puts all of a run onto the streams.
func (p *program) put(f *flight) error {
	if err := context.Cause(f.ctx); err != nil {
		return p.named(nil, err)
	}
	if err := p.arrives(f); err != nil {
		return p.named(nil, err)
	}
	if err := p.body(f); err != nil {
		return err
	}
	if err := p.b.lanes[0].Record(f.slot.done); err != nil {
		return p.named(nil, err)
	}
	return p.settle(f)
}

// arrives brings the inputs to the device, while the run before computes.
func (p *program) arrives(f *flight) error {
	s := f.slot
	if s.in == nil {
		return nil
	}
	if err := p.b.copy.CopyIn(s.staged, s.in, 0, p.in.bytes); err != nil {
		return err
	}
	if err := p.b.copy.Record(s.arrived); err != nil {
		return err
	}
	return p.b.lanes[0].WaitEvent(s.arrived)
}

// body does the run: captured and replayed, or step by step. What is captured was done
// before, on the lanes where it is captured.
func (p *program) body(f *flight) error {
	if f.timed {
		return p.between(f, func() error { return p.timed(f) })
	}
	f.measured = p.measures()
	if !p.warm {
		return p.whole(f, p.single)
	}
	for p.spread && !p.eager {
		r := &f.slot.plain
		if f.measured {
			r = &f.slot.measured
		}
		if r.replay == nil {
			if err := p.capture(f, r, func() error { return p.whole(f, p.side) }); err != nil {
				return err
			}
			if f.captured != nil {
				break
			}
		}
		if r.replay != nil { // else it is not captured
			return p.named(nil, p.replay(r))
		}
	}
	p.launched(f)
	return p.whole(f, p.side)
}

// replay launches what was captured, unless the group has ended: steps would not be put
// behind a collective of it either, and what the graph holds of NCCL's is being aborted.
func (p *program) replay(r *recording) error {
	if c, ok := p.comm.(mortal); ok && p.reducing() {
		if err := c.Failure(); err != nil {
			return err
		}
	}
	return r.replay.Launch(p.b.lanes[0])
}

// whole does a run step by step, on the lanes of s.
func (p *program) whole(f *flight, s *schedule) error {
	return p.between(f, func() error { return p.each(f, s) })
}

// between puts steps between what brings the inputs to where they are read, and what
// brings the outputs to the host.
func (p *program) between(f *flight, steps func() error) error {
	if err := p.begin(f); err != nil {
		return p.named(nil, err)
	}
	if err := steps(); err != nil {
		return err
	}
	return p.named(nil, p.b.lanes[0].CopyOut(f.slot.out, 0, p.out.at, int(p.out.room(p.faultBytes()))))
}

// begin brings the inputs to where the steps read them.
func (p *program) begin(f *flight) error {
	main := p.b.lanes[0]
	if f.slot.in != nil {
		if err := main.CopyDevice(p.in.at, f.slot.staged, int64(p.in.bytes)); err != nil {
			return err
		}
	}
	if len(p.faulty) > 0 {
		return main.Memset(p.faults(), 0, int64(p.faultBytes()))
	}
	return nil
}

// each puts the launches onto the lanes of s.
func (p *program) each(f *flight, s *schedule) error {
	if err := p.fork(s); err != nil {
		return p.named(nil, err)
	}
	if f.measured {
		if err := p.mark(p.b.lanes[0], p.waits.base); err != nil {
			return p.named(nil, err)
		}
	}
	for i := range p.units {
		if err := context.Cause(f.ctx); err != nil {
			return p.named(&p.units[i], err)
		}
		do := p.unit
		if f.measured {
			do = p.measuredUnit
		}
		if !p.warm && s.lane[i] == communication {
			do = func(s *schedule, i int) error { return p.apart(f.ctx, s, i) }
		}
		if err := do(s, i); err != nil {
			return p.named(&p.units[i], err)
		}
	}
	return p.named(nil, p.join(s))
}

// unit puts launch i onto its lane, behind what it waits for.
func (p *program) unit(s *schedule, i int) error {
	if p.units[i].work == nil {
		return nil
	}
	lane := p.lane(s.lane[i])
	if err := p.behind(lane, s.waits[i]); err != nil {
		return err
	}
	if err := p.units[i].work.enqueue(lane); err != nil {
		return err
	}
	if s.signals[i] {
		return lane.Record(p.events[i])
	}
	return nil
}

// behind lets a lane wait for launches.
func (p *program) behind(lane *driver.Stream, launches []int) error {
	for _, d := range launches {
		if p.units[d].work == nil {
			continue
		}
		if err := lane.WaitEvent(p.events[d]); err != nil {
			return err
		}
	}
	return nil
}

// apart does a collective of the first run with nothing beside it: a kernel that is
// loaded meanwhile, by a library at its first use, would wait for the device, and the
// device for the other ranks, who may be loading too.
func (p *program) apart(ctx context.Context, s *schedule, i int) error {
	if err := p.b.lanes[0].Sync(ctx); err != nil {
		return err
	}
	if err := p.unit(s, i); err != nil {
		return err
	}
	over := p.joins[len(p.joins)-1] // used after all launches only
	if err := p.b.comm.Record(over); err != nil {
		return err
	}
	return p.comm.Await(ctx, over)
}

// lane is a stream by its number in a schedule.
func (p *program) lane(n int) *driver.Stream {
	if n == communication {
		return p.b.comm
	}
	return p.b.lanes[n]
}

// fork lets all streams begin after what is on the first.
func (p *program) fork(s *schedule) error {
	main := p.b.lanes[0]
	if err := main.Record(p.joins[0]); err != nil {
		return err
	}
	for _, n := range s.used {
		if n == 0 {
			continue
		}
		if err := p.lane(n).WaitEvent(p.joins[0]); err != nil {
			return err
		}
	}
	return nil
}

// join lets the first stream go on after all.
func (p *program) join(s *schedule) error {
	for k, n := range s.used {
		if n == 0 {
			continue
		}
		e := p.joins[1+k]
		if err := p.lane(n).Record(e); err != nil {
			return err
		}
		if err := p.b.lanes[0].WaitEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// account notes a run that went well.
func (p *program) account(f *flight) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	began := f.began
	if p.ended.After(began) {
		began = p.ended
	}
	p.ended = now
	took := now.Sub(began)
	p.stats.Runs++
	p.stats.RunTime += took
	switch {
	case f.timed:
		return p.tell(f)
	case f.measured && !p.unread:
		wait, err := p.waits.waited(p.b.dev)
		if err != nil {
			p.unread = true
			p.sayUnmeasured(err)
			break
		}
		p.wait = wait
	}
	p.stats.CommWait += min(p.wait, took)
	return nil
}
