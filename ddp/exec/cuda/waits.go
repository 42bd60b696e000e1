package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	driver "ebtrain/collective/cuda"
)

// Which runs measure what their collectives hold up: the first one after the capture of
// one that does not, and then one of so many. It depends on the number of the run alone.
const firstMeasured, measuredEvery = 3, 16

// waits are the timed events by which a run measures what is waited for collectives: two
// for each, where the launch that is first to wait for it has nothing else to wait for,
// and where it is over. Where who enqueues a collective waits for it, nothing is queued
// meanwhile, and the first one is where that launch's lane has done what it has.
type waits struct {
	base  *driver.Event
	pairs [][2]*driver.Event
	of    map[int]int // by launch of a Start: its pair
	first [][]int     // by launch: the Starts that it is first to wait for
	lane  []int       // by pair: that of that launch
}

// newWaits makes the events for a schedule.
func (p *program) newWaits(s *schedule) (_ *waits, err error) {
	w := &waits{of: map[int]int{}, first: make([][]int, len(p.launches))}
	for i := range p.launches {
		for _, d := range s.waits[i] {
			if _, known := w.of[d]; !known && s.lane[d] == communication && p.units[i].work != nil {
				w.of[d] = len(w.of)
				w.first[i], w.lane = append(w.first[i], d), append(w.lane, s.lane[i])
			}
		}
	}
	w.pairs = make([][2]*driver.Event, len(w.of))
	events := []**driver.Event{&w.base}
	for k := range w.pairs {
		events = append(events, &w.pairs[k][0], &w.pairs[k][1])
	}
	for _, e := range events {
		if *e, err = p.b.dev.NewEvent(true); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

func (w *waits) close() error {
	var errs []error
	for _, p := range append(w.pairs, [2]*driver.Event{w.base}) {
		for _, e := range p {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// waited is the time in which a run that is complete waited for collectives: where
// several lanes waited at the same time it counts once. What lanes that did not wait
// computed meanwhile is not known, so it is no less than what collectives cost.
func (w *waits) waited(d *driver.Device) (sum time.Duration, err error) {
	var spans [][2]time.Duration
	for _, p := range w.pairs {
		var at [2]time.Duration
		for k := range at {
			if at[k], err = d.Elapsed(w.base, p[k]); err != nil {
				return 0, err
			}
		}
		spans = append(spans, at)
	}
	return covered(spans), nil
}

// covered is how long spans, from beginnings to ends, take together: what several share
// counts once.
func covered(spans [][2]time.Duration) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b [2]time.Duration) int { return cmp.Compare(a[0], b[0]) })
	end := time.Duration(0)
	for _, s := range spans {
		if from := max(s[0], end); s[1] > from {
			sum, end = sum+s[1]-from, s[1]
		}
	}
	return sum
}

// measures says whether the next run measures what is waited for collectives. Where runs
// are captured all ranks say the same, so a rank that cannot read its times goes on.
func (p *program) measures() bool {
	n := p.run - firstMeasured
	p.run++
	return p.reducing() && !p.unmeasured && n >= 0 && n%measuredEvery == 0
}

// makeWaits makes what measures, when it is first wanted.
func (p *program) makeWaits() (err error) {
	if p.waits == nil {
		p.waits, err = p.newWaits(p.side)
	}
	return err
}

// launched makes a run that is launched step by step measure, if it can.
func (p *program) launched(f *flight) {
	if !f.measured {
		return
	}
	if err := p.makeWaits(); err != nil {
		f.measured, p.unmeasured = false, true
		p.sayUnmeasured(err)
	}
}

// sayUnmeasured says why waits are not measured any more.
func (p *program) sayUnmeasured(err error) {
	p.b.c.Say(fmt.Sprintf("program %q: what is waited for collectives cannot be measured (%v): it is told as it was last measured", p.name, err))
}

// mark records a timed event; in a capture as a node of its own.
func (p *program) mark(s *driver.Stream, e *driver.Event) error {
	if p.capturing {
		return s.RecordExternal(e)
	}
	return s.Record(e)
}

// measuredUnit puts launch i onto its lane with what measures waits: an event before it
// waits for collectives, if it is the first to do so, and one after a collective.
func (p *program) measuredUnit(s *schedule, i int) error {
	w, blocks := p.waits, !p.comm.Capturable()
	if first := w.first[i]; len(first) > 0 && !blocks {
		lane := p.lane(s.lane[i])
		others := slices.DeleteFunc(slices.Clone(s.waits[i]), func(d int) bool { return s.lane[d] == communication })
		if err := p.behind(lane, others); err != nil {
			return err
		}
		for _, d := range first {
			if err := p.mark(lane, w.pairs[w.of[d]][0]); err != nil {
				return err
			}
		}
	}
	k, collective := w.of[i]
	if collective && blocks {
		if err := p.mark(p.lane(w.lane[k]), w.pairs[k][0]); err != nil {
			return err
		}
	}
	if err := p.unit(s, i); err != nil || !collective {
		return err
	}
	return p.mark(p.b.comm, w.pairs[k][1])
}
