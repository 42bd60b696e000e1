package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
	"ebtrain/data/atomicfile"
)

// Format and Version are those of a Report's file. Version grows when a field changes
// its meaning or goes. In version 1 wake_us was all that a wait costs, and no step was
// measured beside busy processors; what it was fitted to is there, and is fitted anew.
const (
	Format  = "ebtrain scaling report"
	Version = 2
	oldest  = 1 // that is read
)

// Report is one run of bench, as --json writes it. Times are in microseconds.
type Report struct {
	Format  string `json:"format"`
	Version int    `json:"version"`

	Begun   time.Time `json:"begun"`
	Program string    `json:"program"`
	Args    []string  `json:"args"`
	Seed    uint64    `json:"seed"`

	Method  string   `json:"method"`
	Data    string   `json:"data"`
	Speed   string   `json:"speed,omitempty"` // unit of images_per_s; "" is images/s
	Device  string   `json:"device"`
	Threads int      `json:"threads"` // of a rank
	Sharded bool     `json:"shard_optimizer,omitempty"`
	CPU     string   `json:"cpu,omitempty"` // of rank 0's machine, by name
	Cores   int      `json:"cores"`         // that ranks of rank 0's machine may use
	Load    float64  `json:"load"`          // of rank 0's host before; -1 if it is not known
	Hosts   []string `json:"hosts"`         // of each rank
	Inner   int      `json:"steps_in_a_turn"`
	Rounds  int      `json:"rounds"`
	Took    float64  `json:"took_s"`

	// Line is the time of a cache line, one way, in nanoseconds: between the nearest two of
	// rank 0's processors and between the farthest two, before all steps or after.
	Line []float64 `json:"line_ns,omitempty"`

	Machines []string `json:"machines,omitempty"` // of each rank: hosts of one share processors

	Cases []*Case `json:"cases"`
	// Beside is what sharing processors costs, for each number of ranks that share them
	// and were to be predicted.
	Beside []*Beside `json:"side_by_side,omitempty"`
	// AmongBusy is the processor time that a rank of such a group has in a step while all
	// processors are kept busy, so that it has none to look for messages with: median over
	// ranks and steps. 0 where it was not measured.
	AmongBusy float64 `json:"processor_among_busy_us,omitempty"`
	among     []float64

	// Collectives are timed before and after the steps: of 2, 4, … ranks as they are, and
	// with each taken for a host. Nil where there is one rank, or --fit-time was 0.
	Collectives []cost.Report `json:"collectives,omitempty"`
	// Busy are all-reduces timed while others kept the processors busy; see timeBusy.
	Busy    []cost.Report `json:"collectives_beside_busy,omitempty"`
	FitUpTo int           `json:"fit_up_to"` // ranks of the cases and collectives that Model is of
	Model   *cost.Model   `json:"model,omitempty"`

	Checks      []Check      `json:"checks,omitempty"`
	Predictions []Prediction `json:"predictions,omitempty"`
	Unshared    []int        `json:"unshared,omitempty"` // ranks by which the batch cannot be shared, so that nothing is predicted with it
	// Unmeasured are sentences on what this report does not say.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// Case is a number of ranks with a batch.
type Case struct {
	Ranks   int   `json:"ranks"`
	OnHosts []int `json:"ranks_on_hosts"`
	Batch   int   `json:"batch"` // over all of them
	Strong  bool  `json:"strong"`
	Weak    bool  `json:"weak"`

	Turns  []float64     `json:"turns_us"` // time of a step, in each round
	Step   cost.Interval `json:"step_us"`
	Images cost.Interval `json:"images_per_s"`
	// Efficiency is images/s of a rank over that of the case with the fewest ranks and
	// the same scaling, round by round; nil for that case itself.
	StrongEfficiency *cost.Interval `json:"strong_efficiency,omitempty"`
	WeakEfficiency   *cost.Interval `json:"weak_efficiency,omitempty"`

	// Medians over the steps of the means over ranks; they add up to the step, nearly.
	Compute float64 `json:"compute_us"`
	Exposed float64 `json:"exposed_us"`
	Data    float64 `json:"data_us"`
	Slowest float64 `json:"slowest_us"`
	// Busy is the time of processors that a rank has in a step.
	Busy float64 `json:"processor_us,omitempty"`
	// Others is how many processors of rank 0's machine were used by what is no rank of
	// the case.
	Others float64 `json:"others,omitempty"`
	// SlowestShare says for each rank in which share of the steps it loaded and computed longest.
	SlowestShare []float64 `json:"slowest_share,omitempty"`

	First  map[string]float64 `json:"losses_of_first_step"`
	Noise  []float64          `json:"compute_ratios"`   // of every rank and step, over the median of its turn
	Events []simulate.Event   `json:"events,omitempty"` // of a step: medians over ranks and traced steps

	splits        []split
	others, lasts float64 // of all turns: what others had of processors, and how long they took
}

// write leaves the report in a file, whole, or writes it into a pipe or a device.
func (r *Report) write(file string) error { return atomicfile.Put(file, r.encode) }

func (r *Report) encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// read is the report in a file. One of a version that is not known is an error.
func read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Format != Format {
		return nil, fmt.Errorf("--from: %s is no report of bench --json", file)
	}
	if head.Version < oldest || head.Version > Version {
		return nil, fmt.Errorf("--from: %s is a report of version %d, and this bench reads versions %d to %d: measure again", file, head.Version, oldest, Version)
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("--from: %s is a damaged report: %w", file, err)
	}
	if err := r.checkWaits(); err != nil {
		return nil, fmt.Errorf("--from: %s is a damaged report: %w", file, err)
	}
	r.Version = Version
	return r, nil
}
