package exec

import (
	"time"

	"ebtrain/collective"
)

// Event is something that a run did and how long it took (see Options.Trace).
type Event struct {
	// Kind is the kind of op, as in Stats.Ops; Collective for a collective as a
	// whole, which runs beside the ops.
	Kind string
	// Name is the op with its parameters, or the label of a collective.
	Name string
	// Scope is where in the model the op stems from; it may be empty.
	Scope string
	Start time.Time
	Time  time.Duration
	Flops int64 // multiply-adds count as two; 0 where it makes no sense
	Bytes int64 // read and written, or reduced
	// Travel is the collective that an op starts or waits for, or that a Collective is;
	// nil for other ops.
	Travel *Travel
}

// Travel is a collective of a program.
type Travel struct {
	Number int             // among those of the program; each has its own
	Kind   collective.Kind // AllReduce, ReduceScatter or AllGather
	Label  string
}

// Collective is the Kind of an Event that spans a collective: from its start
// until its result is there. Ops of a program run one after the other, and so
// do the collectives, but ops and collectives run at the same time.
const Collective = "collective"
