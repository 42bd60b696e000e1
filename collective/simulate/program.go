package simulate

import (
	"fmt"

	"ebtrain/collective"
)

// program is a Step as it is played: what a rank does before it starts each
// collective, in the order in which they are started, and after the last.
type program struct {
	parts       [][]Event // Compute and Wait; those of Wait have the place of their collective
	collectives []planKey
	label       []int // of each collective, its place in labels
	labels      []string
}

// compile checks a step for a group of so many ranks.
func compile(s Step, ranks int) (*program, error) {
	p := &program{parts: [][]Event{nil}}
	places, waited, names := map[int]int{}, map[int]bool{}, map[string]int{}
	for i, e := range s.Events {
		wrong := func(text string, args ...any) error {
			return fmt.Errorf("simulate: event %d of the step %s", i, fmt.Sprintf(text, args...))
		}
		place, started := places[e.Collective]
		last := &p.parts[len(p.parts)-1]
		switch {
		case e.Kind == Compute && !(e.US >= 0 && e.US < 1e15):
			return nil, wrong("computes for %v us, expected 0 or more", e.US)
		case e.Kind == Compute:
			*last = append(*last, e)
		case e.Kind == Start && started:
			return nil, wrong("starts collective %d for the second time", e.Collective)
		case e.Kind == Start:
			key := planKey{e.What, e.Bytes}
			if key.kind == 0 {
				key.kind = collective.AllReduce
			}
			if !key.valid() {
				return nil, wrong("starts %v of %d bytes, expected a collective of 0 bytes or more", key.kind, key.bytes)
			}
			name, known := names[e.Label]
			if !known {
				name = len(p.labels)
				names[e.Label], p.labels = name, append(p.labels, e.Label)
			}
			places[e.Collective] = len(p.collectives)
			p.collectives, p.label, p.parts = append(p.collectives, key.whole(ranks)), append(p.label, name), append(p.parts, nil)
		case e.Kind == Wait && (!started || waited[e.Collective]):
			return nil, wrong("waits for collective %d, which was not started before or was waited for already", e.Collective)
		case e.Kind == Wait:
			waited[e.Collective] = true
			e.Collective = place
			*last = append(*last, e)
		default:
			return nil, wrong("is of kind %d, expected Compute, Start or Wait", e.Kind)
		}
	}
	if len(waited) < len(places) {
		return nil, fmt.Errorf("simulate: the step starts %d collectives and waits for %d, expected a Wait for each", len(places), len(waited))
	}
	return p, nil
}

// valid says whether k can be played.
func (k planKey) valid() bool {
	return k.kind >= collective.Barrier && k.kind <= collective.Broadcast && k.bytes >= 0
}

// whole is k with as many elements as ranks can cut into equal parts.
func (k planKey) whole(ranks int) planKey {
	unit := 4
	if k.kind == collective.ReduceScatter || k.kind == collective.AllGather {
		unit = 4 * ranks
	}
	if k.kind == collective.Barrier {
		k.bytes = 0
	}
	k.bytes = (k.bytes + unit - 1) / unit * unit
	return k
}
