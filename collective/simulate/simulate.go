// Package simulate plays a training step on groups of ranks that one does not have:
// every rank computes, starts collectives and waits for them, and the collectives
// carry out the schedule of the transport (package schedule) over links and
// processors that cost what a cost.Model says.
//
// Time is simulated: no clock is read and nothing is random but by name, so the same
// arguments give the same bits on every machine. Functions keep no state and may be
// called from any goroutine.
//
// What is modelled, and what is not:
//   - Collectives of a rank run one after the other, in the order of Start.
//   - A link carries what its host sends at the same time in equal shares, one step
//     after the other, in both directions at once. What comes in shares the receiver's
//     link with all that came before, whoever sent it. Between links there is a network
//     without bottlenecks, and nothing is lost.
//   - Ranks that compute share the processors of their machine evenly, and those that
//     wait leave theirs to them. What a processor does for a collective delays the
//     computing that it was to overlap with.
//   - Where a machine has fewer processors than ranks, collectives have their shares,
//     too, of what their messages and bytes take of a processor there (Busy and
//     BusyPerByte of cost.Costs), and are late by what they wait for them; and who has
//     waited is late by Cluster.Delay, for which it needs no processor, and then needs
//     Cluster.Wake of one before it goes on.
//   - A rank computes, in each step, for its time times a ratio that is drawn from
//     those that were measured.
package simulate

import (
	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// Cluster is a group of ranks.
type Cluster struct {
	Ranks []int // on each host, at least one
	// Cores are the processors of a machine; 0 is as many as its ranks, one thread each.
	Cores int
	// Others is how many of the processors of a machine are taken by what is no rank.
	Others float64
	// Wake is the time in microseconds that a rank needs after a wait where there are
	// fewer processors than ranks: it is woken, and finds caches as others left them. It is
	// time of a processor, of which ranks that wake together have their shares.
	Wake float64
	// Delay is the time in microseconds by which a rank is woken late there. It needs no
	// processor, so ranks that wait together are late by it together.
	Delay float64
	// Beside is how many groups like this one are on the same machines, and know nothing
	// of each other; a Result is then of all of them. 0 is one.
	Beside int
	// Together is how many hosts are one machine: collbench pretends hosts, which
	// share processors. 0 and 1 are hosts that are machines of their own; more than
	// there are is all on one.
	Together int
	// Wired says that hosts of one machine have links of their own, as network
	// namespaces may; otherwise what they send is the work of their processors.
	Wired bool
	Costs cost.Model
}

// Hosts are so many ranks on hosts of so many each, the last of which may have fewer.
func Hosts(ranks, each int) []int {
	var out []int
	for ; ranks > 0; ranks -= each {
		out = append(out, min(each, ranks))
	}
	return out
}

// Step is what every rank does in a training step, in program order. Every collective
// is started once and waited for once, after it was started.
type Step struct{ Events []Event }

// Kind says what an Event is.
type Kind uint8

const (
	// Compute keeps the rank busy for US microseconds.
	Compute Kind = iota + 1
	// Start queues a collective and takes no time.
	Start
	// Wait ends when the collective is complete on this rank.
	Wait
)

// Event is one thing that a rank does.
type Event struct {
	Kind       Kind            `json:"kind"`
	US         float64         `json:"us,omitempty"`         // Compute
	Collective int             `json:"collective,omitempty"` // Start and Wait: which, any number
	What       collective.Kind `json:"what,omitempty"`       // Start: 0 is an all-reduce
	Bytes      int             `json:"bytes,omitempty"`      // Start: of a rank's vector of float32, in memory from Alloc
	Label      string          `json:"label,omitempty"`      // Start: what exposed time is summed under, such as "bucket"
}

// Noise is how the computing time of a step varies.
type Noise struct {
	// Ratios are measured times over their median. One is drawn for each rank and
	// step, all with equal chances, and stretches all that the rank computes in the
	// step. None is 1 always.
	Ratios []float64
}

// Result is what a simulated training took, in microseconds.
type Result struct {
	Steps  []float64 `json:"steps_us"`  // each, from the last rank's end of the step before to the last rank's end
	Median float64   `json:"median_us"` // of an even number the shorter of the two in the middle, so it is that of a step
	P10    float64   `json:"p10_us"`    // a tenth of the steps, rounded down, are shorter,
	P90    float64   `json:"p90_us"`    // and as many longer

	// Of the median step, and the mean over ranks: Compute, Exposed and Slowest add up
	// to what a rank's step takes.
	Compute float64   `json:"compute_us"` // with what collectives delay it on shared processors
	Exposed []Exposed `json:"exposed"`    // waiting for collectives that all ranks have begun, by label
	Slowest float64   `json:"slowest_us"` // waiting for collectives that some rank has not begun

	// Where machines have fewer processors than ranks, the means over ranks and all steps:
	// the time of a processor that a rank has, be it to compute, for collectives or to wake,
	// and after how many waits it needs Wake and Delay. Elsewhere 0.
	Processor float64 `json:"processor_us,omitempty"`
	Woken     float64 `json:"woken,omitempty"`

	Messages int64 `json:"messages"` // between hosts, in a step
	Bytes    int64 `json:"bytes"`    // between hosts, in a step
}

// Exposed is time for which ranks wait for the collectives of one label, which all
// have begun.
type Exposed struct {
	Label string  `json:"label"`
	US    float64 `json:"us"`
}

// ExposedUS is all of Exposed.
func (r Result) ExposedUS() float64 {
	var sum float64
	for _, e := range r.Exposed {
		sum += e.US
	}
	return sum
}
