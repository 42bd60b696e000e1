// Package trace writes what happened in one training step, on all ranks, in
// the trace event format that Perfetto (ui.perfetto.dev) and chrome://tracing
// read: JSON, one process per rank, with a row for what the rank computes and
// one for its collectives.
//
// Invariants: the spans of a row nest, they never overlap in part; times of
// all ranks are of one clock, the wall clock of their hosts, so the offset of
// two hosts' clocks is seen as an offset of their ranks.
//
// A Recorder belongs to one goroutine at a time.
package trace

import (
	"cmp"
	"slices"
	"time"

	"ebtrain/ddp/exec"
)

// Span is something that took time.
type Span struct {
	Row   Row    `json:"row"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`            // category: "Conv2D", "Wait", "collective", "loop"
	Scope string `json:"scope,omitempty"` // of the model
	Start int64  `json:"start"`           // ns since 1970
	Time  int64  `json:"time"`            // ns

	Flops  int64 `json:"flops,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
	Queued int64 `json:"queued,omitempty"` // ns from the start of a collective until those before it were complete

	Travel *exec.Travel `json:"travel,omitempty"` // the collective that an op starts or waits for, or that this is
}

// Row is a line of a rank's picture.
type Row uint8

const (
	Compute       Row = iota // steps, their parts, ops, waits
	Communication            // collectives, each from when it could run until its result was there
)

func (r Row) String() string { return [...]string{"compute", "communication"}[r] }

// KindLoop is the Kind of what the training loop does around the ops.
const KindLoop = "loop"

// Recorder collects the spans of one rank.
type Recorder struct {
	origin time.Time
	wall   int64 // origin in ns since 1970
	spans  []Span
}

// NewRecorder starts with the clock at now; later times are measured from it,
// so that a clock that is set meanwhile does no harm.
func NewRecorder(now time.Time) *Recorder { return &Recorder{origin: now, wall: now.UnixNano()} }

func (r *Recorder) at(t time.Time) int64 { return r.wall + int64(t.Sub(r.origin)) }

// Loop records a part of the loop, from start until end.
func (r *Recorder) Loop(name string, start, end time.Time) {
	r.spans = append(r.spans, Span{Row: Compute, Name: name, Kind: KindLoop, Start: r.at(start), Time: int64(end.Sub(start))})
}

// Op records what a program tells (exec.Options.Trace).
func (r *Recorder) Op(e exec.Event) {
	row := Compute
	if e.Kind == exec.Collective {
		row = Communication
	}
	r.spans = append(r.spans, Span{Row: row, Name: e.Name, Kind: e.Kind, Scope: e.Scope,
		Start: r.at(e.Start), Time: int64(e.Time), Flops: e.Flops, Bytes: e.Bytes, Travel: e.Travel})
}

// Spans are the spans by row and start, an outer one before those in it.
// Collectives run one after the other in the order in which they were started,
// so one that was started while another ran begins where that ends.
func (r *Recorder) Spans() []Span {
	s := slices.Clone(r.spans)
	slices.SortStableFunc(s, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Start, b.Start), cmp.Compare(b.Time, a.Time))
	})
	var idle int64 // when the collectives before are complete
	for i := range s {
		if c := &s[i]; c.Row == Communication {
			end := max(c.Start+c.Time, idle)
			if idle > c.Start {
				c.Queued = idle - c.Start
				c.Start = idle
			}
			c.Time, idle = end-c.Start, end
		}
	}
	return s
}
