package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/collective"
	"ebtrain/collective/simulate"
	"ebtrain/ddp/exec/plan"
	"ebtrain/trainer/run/trace"
)

// traces are the steps of which the events are the median.
const traces = 5

// trace has the ranks of a case do a few steps that are traced. Rank 0 keeps the events.
func (b *bench) trace(ctx context.Context, i int) error {
	c, rig := b.r.Cases[i], b.rigs[i]
	if c.Ranks == 1 || rig == nil {
		return nil
	}
	var all [][]simulate.Event
	for range traces {
		ranks, err := rig.trainer.Trace(ctx)
		if err != nil {
			return err
		}
		for _, spans := range ranks {
			events, err := eventsOf(spans)
			if err != nil {
				return fmt.Errorf("trace of %d ranks: %w", c.Ranks, err)
			}
			all = append(all, events)
		}
	}
	if err := rig.trainer.Compare(ctx); err != nil {
		return err
	}
	var err error
	c.Events, err = middle(all)
	return err
}

// eventsOf is what a rank did in a step: it computes, starts collectives and waits for
// them. What it waits for data is no event. A trace without collectives has no events.
func eventsOf(spans []trace.Span) ([]simulate.Event, error) {
	t := telling{at: -1, bytes: map[int][]int{}, started: map[int]int{}}
	end := int64(0)
	for _, s := range spans {
		switch {
		case s.Row == trace.Communication:
			t.bytes[s.Travel.Number] = append(t.bytes[s.Travel.Number], int(s.Bytes))
		case s.Kind == trace.KindLoop && s.Name == "feed":
			t.at = s.Start
		case s.Kind == trace.KindLoop && s.Name == "step":
			end = s.Start + s.Time
		}
	}
	if t.at < 0 {
		return nil, errors.New("it has no part called feed")
	}
	for _, s := range spans {
		if s.Row == trace.Compute && s.Travel != nil {
			if err := t.tell(s); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	t.compute(end)
	if t.collectives == 0 {
		return nil, nil
	}
	return t.events, nil
}

// telling makes events of spans in order.
type telling struct {
	events      []simulate.Event
	at          int64         // until when all is told
	collectives int           // how many are
	bytes       map[int][]int // of those that are not told, by number; several programs have the same
	started     map[int]int   // those that are told and not waited for, by number
}

// compute tells that the rank computes until then.
func (t *telling) compute(until int64) {
	if until > t.at {
		t.events = append(t.events, simulate.Event{Kind: simulate.Compute, US: float64(until-t.at) / 1e3})
		t.at = until
	}
}

// tell tells of an op that starts a collective or waits for it.
func (t *telling) tell(s trace.Span) error {
	number := s.Travel.Number
	switch s.Kind {
	case string(plan.KindStart):
		t.compute(s.Start + s.Time)
		left := t.bytes[number]
		if len(left) == 0 {
			return errors.New("the trace has no collective of that number")
		}
		what, err := whatOf(s.Travel.Kind)
		if err != nil {
			return err
		}
		t.events = append(t.events, simulate.Event{Kind: simulate.Start, Collective: t.collectives, What: what, Bytes: left[0], Label: family(s.Travel.Label)})
		t.bytes[number], t.started[number] = left[1:], t.collectives
		t.collectives++
	case string(plan.KindWait):
		t.compute(s.Start)
		which, ok := t.started[number]
		if !ok {
			return errors.New("it was not started")
		}
		t.events = append(t.events, simulate.Event{Kind: simulate.Wait, Collective: which})
		delete(t.started, number)
		t.at = max(t.at, s.Start+s.Time)
	default:
		return fmt.Errorf("an op of kind %s is neither the start of a collective nor a wait for it", s.Kind)
	}
	return nil
}

// whatOf is what a simulation calls a collective: 0 for an all-reduce.
func whatOf(kind collective.Kind) (collective.Kind, error) {
	switch kind {
	case collective.AllReduce:
		return 0, nil
	case collective.ReduceScatter, collective.AllGather:
		return kind, nil
	}
	return 0, fmt.Errorf("%s is not simulated, expected all-reduce, reduce-scatter or all-gather", kind)
}

// Families of collectives, under which a simulation adds up what they cost.
const (
	batchNorm = "batch norm"
	gradients = "gradients"
)

func family(label string) string {
	switch {
	case strings.Contains(label, ".moments"):
		return batchNorm
	case strings.Contains(label, "bucket "):
		return gradients
	}
	return label
}

// middle are the medians of events that several ranks and steps had. Kinds and
// collectives are the same in all: it is one program. None if none shows a collective.
func middle(all [][]simulate.Event) ([]simulate.Event, error) {
	if !slices.ContainsFunc(all, func(e []simulate.Event) bool { return e != nil }) {
		return nil, nil
	}
	merged := make([][]simulate.Event, len(all))
	for i, events := range all {
		merged[i] = whole(events)
	}
	out := slices.Clone(merged[0])
	times := make([]float64, len(all))
	for i := range out {
		for k, events := range merged {
			if len(events) != len(out) || events[i].Kind != out[i].Kind || events[i].Collective != out[i].Collective || events[i].What != out[i].What || events[i].Bytes != out[i].Bytes {
				return nil, errors.New("two traced steps of one program differ in their collectives")
			}
			times[k] = events[i].US
		}
		if out[i].Kind == simulate.Compute {
			out[i].US = round(medianOf(times).Value, 3)
		}
	}
	return out, nil
}

// whole has exactly one computation, perhaps of no time, before each other event and at
// the end.
func whole(events []simulate.Event) []simulate.Event {
	var out []simulate.Event
	us := 0.0
	for _, e := range events {
		if e.Kind == simulate.Compute {
			us += e.US
			continue
		}
		out, us = append(out, simulate.Event{Kind: simulate.Compute, US: us}, e), 0
	}
	return append(out, simulate.Event{Kind: simulate.Compute, US: us})
}

// computeOf is all that is computed in events, in microseconds.
func computeOf(events []simulate.Event) (us float64) {
	for _, e := range events {
		us += e.US
	}
	return us
}
