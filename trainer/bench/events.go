package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/collective"
	"ebtrain/collective/simulate"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/run/trace"
)

// traces are the steps of which the events are the median.
const traces = 5

// Kinds of the ops that start a collective and wait for it.
const (
	kindStart = "Start"
	kindWait  = "Wait"
)

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
	type op struct {
		name  string
		began int64
	}
	var events []simulate.Event
	started := map[string][]int{}   // numbers of collectives that are not waited for, by name
	bytes := map[string][]int{}     // of collectives in order, by label
	at, collectives := int64(-1), 0 // until when all is told
	end := int64(0)
	for _, s := range spans {
		switch {
		case s.Row == trace.Communication:
			bytes[s.Name] = append(bytes[s.Name], int(s.Bytes))
		case s.Kind == trace.KindLoop && s.Name == "feed":
			at = s.Start
		case s.Kind == trace.KindLoop && s.Name == "step":
			end = s.Start + s.Time
		}
	}
	if at < 0 {
		return nil, errors.New("it has no part called feed")
	}
	compute := func(until int64) {
		if until > at {
			events = append(events, simulate.Event{Kind: simulate.Compute, US: float64(until-at) / 1e3})
			at = until
		}
	}
	for _, s := range spans {
		if s.Row != trace.Compute {
			continue
		}
		o := op{s.Name, s.Start}
		switch s.Kind {
		case kindStart:
			compute(o.began + s.Time)
			name := strings.TrimPrefix(o.name, "start ")
			label := labelOf(name)
			left := bytes[label]
			if len(left) == 0 {
				return nil, fmt.Errorf("%s has no collective of that label", o.name)
			}
			bytes[label] = left[1:]
			what, err := whatOf(name)
			if err != nil {
				return nil, err
			}
			events = append(events, simulate.Event{Kind: simulate.Start, Collective: collectives, What: what, Bytes: left[0], Label: family(label)})
			started[name] = append(started[name], collectives)
			collectives++
		case kindWait:
			compute(o.began)
			name := strings.TrimPrefix(o.name, "wait ")
			left := started[name]
			if len(left) == 0 {
				return nil, fmt.Errorf("%s was not started", o.name)
			}
			events = append(events, simulate.Event{Kind: simulate.Wait, Collective: left[0]})
			started[name] = left[1:]
			at = max(at, s.Start+s.Time)
		case exec.Collective:
			return nil, fmt.Errorf("%s is among the ops", o.name)
		}
	}
	compute(end)
	if collectives == 0 {
		return nil, nil
	}
	return events, nil
}

// labelOf is the label in the name of a collective's op: allreduce{mean "losses"}.
func labelOf(name string) string {
	_, rest, _ := strings.Cut(name, `"`)
	if i := strings.LastIndexByte(rest, '"'); i >= 0 {
		return rest[:i]
	}
	return name
}

// whatOf is the collective of an op of that name, 0 for an all-reduce.
func whatOf(name string) (collective.Kind, error) {
	kind, _, _ := strings.Cut(name, "{")
	switch kind {
	case "allreduce":
		return 0, nil
	case "reducescatter":
		return collective.ReduceScatter, nil
	case "allgather":
		return collective.AllGather, nil
	}
	return 0, fmt.Errorf("%s is no collective that is known, expected allreduce, reducescatter or allgather", name)
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
