// Package cost says what collectives cost on a group of ranks: the times that
// collbench has measured, beside what the machine could do at best, and the line
// (latency and bandwidth) that describes them.
//
// A Report is a plain value that goes to a file as JSON and comes back the same;
// whoever predicts times of other sizes reads it. Fit is a pure function. Nothing
// here keeps state, so everything may be used from any goroutine.
package cost

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Version is that of Report. It grows when a field changes its meaning or goes; a
// new field leaves it as it is.
const Version = 1

// Report is one run of collbench, as --json writes it.
type Report struct {
	Version int `json:"version"`

	// What was timed: "all-reduce", "f32", "sum", and "alloc" for vectors that
	// are reduced where they lie or "ordinary" for those that are copied.
	Collective string `json:"collective"`
	Type       string `json:"type"`
	Op         string `json:"op"`
	Memory     string `json:"memory"`

	// Where: ranks of one host share memory, hosts are connected by TCP. Ranks
	// are those on each host, by the host's lowest rank.
	World   int    `json:"world"`
	Ranks   []int  `json:"ranks_on_hosts"`
	Network string `json:"network"` // "auto", or "tcp" or "namespaces" where each rank was made a host of its own
	// Machines are those that the hosts are on, as far as is known (0 is not): hosts
	// that are only pretended share one.
	Machines int `json:"machines,omitempty"`

	// Compute is how long each rank computed before every collective, in microseconds.
	Compute float64 `json:"compute_us,omitempty"`

	// Rank 0 and its machine, at the beginning.
	Begun   time.Time `json:"begun"`
	Program string    `json:"program"` // with its version
	CPUs    int       `json:"cpus"`
	Load    float64   `json:"load"` // of the last minute; -1 if it is not known

	// Meeting is the least that a barrier takes: of flags, in a cache line from each rank
	// of a host to each. Nil with several hosts, and for other collectives than all-reduce.
	Meeting *Times `json:"meeting,omitempty"`

	Sizes []Size `json:"sizes"` // in the order in which they were measured

	// Fits over Sizes; nil where there are too few of them, or none of the kind.
	// Bytes are those of the vector, also for the stream.
	Fit       *Line `json:"fit"`
	FloorFit  *Line `json:"floor_fit"`
	StreamFit *Line `json:"stream_fit"`
}

// Size is what was measured of vectors of one size. Times are of one collective.
type Size struct {
	Bytes int `json:"bytes"` // of one rank's vector
	Times     // of the collective, as rank 0 saw it; of a broadcast, which it begins, as the slowest rank did

	Algorithm float64 `json:"algbw_gbs"` // bytes over the best time
	Bus       float64 `json:"busbw_gbs"` // the same times what must move for each byte
	Wrong     int64   `json:"wrong"`     // elements, of the results that were looked at
	// Processor is the time of processors in microseconds that a collective had, as the
	// mean over ranks, each with all threads of its process. Who waits may look for what
	// it waits for, and has a processor meanwhile unless somebody else wants it.
	Processor float64 `json:"processor_us,omitempty"`

	// Floor is the loop that reads the vectors of all ranks of a host and writes
	// all, from as many threads, on the slowest host. Nil where no ranks share one,
	// and for other collectives than all-reduce.
	Floor *Times `json:"floor"`
	// Least is that of Meeting, and of each rank copying its vector before and summing
	// all of them after it. Nil where there is no Meeting, and of large vectors.
	Least *Times `json:"least,omitempty"`
	// Stream is the time in which a TCP connection between two hosts carries Bytes
	// both ways at once: the slowest of some pairs that do so at the same time.
	// Nil with one host.
	Stream *Times `json:"stream"`
	// What of the collective's median time the floor's, the least, and the stream's for the
	// bytes that must go over the network, would take: 1 is as good as it gets.
	FloorShare  float64 `json:"floor_share,omitempty"`
	LeastShare  float64 `json:"least_share,omitempty"`
	StreamShare float64 `json:"stream_share,omitempty"`
}

// Times are what repetitions of the same thing took, in microseconds.
type Times struct {
	Best   float64 `json:"best_us"`
	P10    float64 `json:"p10_us"`
	Median float64 `json:"median_us"`
	Reps   int     `json:"reps"` // measured times; small ones are of ten repetitions each

	// The medians of the first and of the last third of the measured times, 0 where
	// there are too few. They differ where somebody else came or went meanwhile.
	First float64 `json:"first_us,omitempty"`
	Last  float64 `json:"last_us,omitempty"`
}

// thirds are so many times at least, that their medians say anything.
const thirds = 15

// TimesOf is of times in microseconds, in the order in which they were measured, which
// it sorts.
func TimesOf(us []float64) Times {
	n := len(us)
	var t Times
	if n >= thirds {
		t.First, t.Last = median(us[:n/3]), median(us[n-n/3:])
	}
	slices.Sort(us)
	t.Best, t.P10, t.Median, t.Reps = us[0], us[n/10], us[n/2], n
	return t
}

// median of the upper half, as Times.Median is.
func median(us []float64) float64 {
	sorted := slices.Sorted(slices.Values(us))
	return sorted[len(sorted)/2]
}

// drift is how much longer one third may take than the other before it is told.
const drift = 1.3

// drifted says that the first and the last third disagree.
func (t Times) drifted() bool {
	return t.First > 0 && t.Last > 0 && max(t.First/t.Last, t.Last/t.First) >= drift
}

// Undisturbed is the median or, if the first and the last third disagree, that of the
// shorter one: whoever came or went meanwhile has only made it longer.
func (t Times) Undisturbed() float64 {
	if t.drifted() {
		return min(t.First, t.Last)
	}
	return t.Median
}

// fewSizes are too few to tell rounds from bytes.
const fewSizes = 3

// Doubts are reasons not to believe what is fitted to r, a sentence each: few sizes, or
// a size whose first and last repetitions disagree, that of the largest difference.
func (r Report) Doubts() []string {
	var out []string
	where := fmt.Sprintf("%s on hosts of %v ranks", r.Collective, r.Ranks)
	if len(r.Sizes) < fewSizes {
		out = append(out, fmt.Sprintf("%s was measured at %d sizes, expected at least %d", where, len(r.Sizes), fewSizes))
	}
	var changed int
	var worst Size
	apart := func(s Size) float64 { return max(s.First/s.Last, s.Last/s.First) }
	for _, s := range r.Sizes {
		if !s.drifted() {
			continue
		}
		if changed++; changed == 1 || apart(s) > apart(worst) {
			worst = s
		}
	}
	if changed > 0 {
		out = append(out, fmt.Sprintf("%s: at %d of %d sizes the machine or its links changed during the measurement; %d bytes took %.4g us in the first third of the repetitions and %.4g in the last",
			where, changed, len(r.Sizes), worst.Bytes, worst.First, worst.Last))
	}
	return out
}

// Line is time = latency + bytes / bandwidth. Intervals have a confidence of 95 %.
type Line struct {
	Latency   Interval `json:"latency_us"`
	PerByte   Interval `json:"per_byte_ns"`
	Bandwidth Interval `json:"bandwidth_gbs"` // 1/PerByte
	// Residuals are measured time over that of the line, less 1, at each size.
	Residuals []float64 `json:"residuals"`
}

// Interval is an estimate and the bounds of its confidence.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// At is the time in microseconds that the line gives for so many bytes.
func (l Line) At(bytes int) float64 { return l.Latency.Value + float64(bytes)*l.PerByte.Value/1e3 }

// Encode writes r as JSON.
func (r Report) Encode(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Read is the report in a file. One of another version is an error.
func Read(file string) (Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("%s is no report of collbench --json: %w", file, err)
	}
	if r.Version != Version {
		return Report{}, fmt.Errorf("%s is a report of version %d, expected %d: measure again with this collbench", file, r.Version, Version)
	}
	return r, nil
}
