package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// event is an entry of the trace event format; times are in microseconds.
type event struct {
	Name string   `json:"name"`
	Cat  string   `json:"cat,omitempty"`
	Ph   string   `json:"ph"` // X: complete, M: a name
	Ts   *float64 `json:"ts,omitempty"`
	Dur  *float64 `json:"dur,omitempty"`
	Pid  int      `json:"pid"` // rank
	Tid  Row      `json:"tid"`
	Args any      `json:"args,omitempty"`
}

type named struct {
	Name string `json:"name"`
}

type args struct {
	Op       string  `json:"op,omitempty"` // with its parameters
	Scope    string  `json:"scope,omitempty"`
	Bytes    int64   `json:"bytes,omitempty"`
	Flops    int64   `json:"flops,omitempty"`
	GFlopS   float64 `json:"gflop_per_s,omitempty"`
	GBS      float64 `json:"gb_per_s,omitempty"`
	QueuedUS float64 `json:"queued_us,omitempty"`
}

// Write writes the spans of all ranks, by rank, one event to a line. Time 0 is
// the earliest start.
func Write(w io.Writer, ranks [][]Span) error {
	out := bufio.NewWriter(w)
	write := func(text string) { _, _ = out.WriteString(text) } // Flush reports the first error
	write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")
	before := "\n"
	for _, e := range all(ranks) {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		write(before)
		write(string(line))
		before = ",\n"
	}
	write("\n]}\n")
	return out.Flush()
}

func all(ranks [][]Span) []event {
	zero := int64(math.MaxInt64)
	for _, spans := range ranks {
		for _, s := range spans {
			zero = min(zero, s.Start)
		}
	}
	var events []event
	for rank, spans := range ranks {
		events = append(events, event{Name: "process_name", Ph: "M", Pid: rank, Args: named{fmt.Sprintf("rank %d", rank)}})
		for _, row := range []Row{Compute, Communication} {
			events = append(events, event{Name: "thread_name", Ph: "M", Pid: rank, Tid: row, Args: named{row.String()}})
		}
		for _, s := range spans {
			events = append(events, complete(rank, s, zero))
		}
	}
	return events
}

// complete is the event of a span. An op is shown by where it is in the model
// and its kind; its parameters, which may be long, are among the details.
func complete(rank int, s Span, zero int64) event {
	ts, dur := micro(s.Start-zero), micro(s.Time)
	e := event{Name: s.Name, Cat: s.Kind, Ph: "X", Ts: &ts, Dur: &dur, Pid: rank, Tid: s.Row}
	if s.Kind == KindLoop {
		return e
	}
	a := args{Scope: s.Scope, Bytes: s.Bytes, Flops: s.Flops, QueuedUS: micro(s.Queued)}
	if s.Row == Compute {
		a.Op = strings.ToValidUTF8(s.Name, "?")
		if e.Name = s.Kind; s.Scope != "" {
			e.Name += " " + s.Scope
		}
	}
	if s.Time > 0 {
		a.GFlopS = rate(s.Flops, s.Time)
		a.GBS = rate(s.Bytes, s.Time)
	}
	e.Args = a
	return e
}

func micro(ns int64) float64 { return float64(ns) / 1e3 }

// rate is n per ns, to a thousandth.
func rate(n, ns int64) float64 { return math.Round(1e3*float64(n)/float64(ns)) / 1e3 }
