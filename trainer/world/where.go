package world

import (
	"context"
	"encoding/json"
	"fmt"

	"ebtrain/collective/processors"
)

// whereabouts is what a rank tells of where it is.
type whereabouts struct {
	Machine    string         // "" if its system does not say
	Processors processors.Set // that it may run on
}

// findOut asks all ranks where they are. A machine without a name is that of its host.
func (w *World) findOut(ctx context.Context) error {
	set, err := processors.Allowed()
	if err != nil {
		return err
	}
	mine, err := json.Marshal(whereabouts{processors.Machine(), set})
	if err != nil {
		return err
	}
	texts, err := w.Exchange(ctx, "processors", mine)
	if err != nil {
		return err
	}
	w.where = make([]whereabouts, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &w.where[r]); err != nil {
			return fmt.Errorf("processors of rank %d: %w", r, err)
		}
	}
	return nil
}

// Machines name the machine of each rank, "" if its system does not say. Hosts of one share
// processors.
func (w *World) Machines() []string {
	names := make([]string, len(w.where))
	for r, one := range w.where {
		names[r] = one.Machine
	}
	return names
}

// Processors are those that ranks of this one's machine may run on: where a launcher binds each
// rank, the sets of all of them together.
func (w *World) Processors() processors.Set {
	return together(w.where, w.Hosts(), w.Rank())
}

// Sharing is how many ranks of this one's machine may run on a processor of its own set, itself
// included: 1 where a launcher binds each rank to processors of its own, and all of them where
// none is bound.
func (w *World) Sharing() int { return sharing(w.where, w.Hosts(), w.Rank()) }

// together are the processors of the ranks on one machine.
func together(where []whereabouts, hosts []string, rank int) (all processors.Set) {
	for r := range where {
		if near(where, hosts, r, rank) {
			all = all.Or(where[r].Processors)
		}
	}
	return all
}

// sharing is how many ranks of one machine have a processor in common with a rank.
func sharing(where []whereabouts, hosts []string, rank int) (n int) {
	for r := range where {
		if near(where, hosts, r, rank) && where[r].Processors.Meets(where[rank].Processors) {
			n++
		}
	}
	return n
}

// near says whether two ranks are on one machine; of what does not say which that is, only ranks
// of one host are.
func near(where []whereabouts, hosts []string, a, b int) bool {
	if where[a].Machine == "" || where[b].Machine == "" {
		return hosts[a] == hosts[b]
	}
	return where[a].Machine == where[b].Machine
}
