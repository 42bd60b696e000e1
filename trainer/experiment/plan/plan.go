// Package plan is what an experiment is: data. An Experiment has rows, each a
// preset of train with flags beside it, seeds, what is measured of every row and
// seed, which numbers a publication has for it, and what must come out. Nothing
// here runs anything; Validate finds what cannot be meant.
//
// There are two kinds. Most experiments train: a cell, one row with one seed, is
// a run of train that is measured by evaluate. A computed one has a Compute
// function instead, which makes the numbers of a cell itself.
//
// Values of this package are not changed after they are made, and may be used
// from any goroutine.
package plan

import (
	"context"
	"slices"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
)

// Experiment is one table of results.
type Experiment struct {
	Name  string
	About string // what it is to show, in sentences
	// Source says where the numbers beside the measured ones come from.
	Source string

	Data *DataSet // nil: needs none
	// Beside are data sets that are not trained on: what is measured compares with them.
	Beside []DataSet
	Seeds  []uint64 // unless others are asked for
	// Alone says that its times are measured: one cell at a time, whatever was
	// asked for, each with one thread.
	Alone bool
	// Ranks are numbers of ranks, rising: a cell is trained once on each of them, by the
	// launcher, and what is measured compares them. Nil: train is started alone. What is
	// trained is not kept, so nothing is evaluated or sampled.
	Ranks []int

	Flags    map[string]string // of train, for all rows
	Evaluate map[string]string // flags of evaluate, besides what is to be measured
	Sample   map[string]string // flags of sample; nil: nothing is sampled
	// Between are flags of a second run of sample, with the latents of pictures of the
	// experiment's data; nil: none. It makes between.png.
	Between map[string]string
	Curves  []Curve
	Compute Compute // of a computed experiment, which has none of the six above

	// Saturates says how a cell's curves show that its energy saturated; nil: nothing is
	// looked for.
	Saturates *Saturation

	// Select chooses the checkpoint that is measured; nil: that of the last step.
	Select *Selection

	Columns []string // measures, in the order of the table
	Rows    []Row
	Checks  []judge.Check // besides the numbers of the rows
	Figures []Figure
	// Pictures are files of a row's first seed that the report shows.
	Pictures []Picture
}

// Row is one setting of an experiment.
type Row struct {
	Name   string
	Preset string            // of train; empty: its defaults
	Data   *DataSet          // of this row, where the experiment has none for all
	Flags  map[string]string // of train, beside the preset; of Compute
	Expect map[string]judge.Number
	// Lacks are columns, and curves by name, that this row has not.
	Lacks []string
	// KnownBad says that it is meant to come out badly: to diverge is a result.
	KnownBad bool
}

// DataSet is what an experiment is trained on.
type DataSet struct {
	Name    string
	Builtin string   // --data of train and evaluate, where the programs have it
	Make    []string // otherwise the command of mkshards and its flags, without --src and --out
	Source  string   // what --src is, in words, and where it comes from
	// Sentences says that samples are sentences: they are drawn into samples.txt, and
	// not into samples.png.
	Sentences bool
}

// Selection chooses among the checkpoints of a run the one of which a measure is
// least.
type Selection struct {
	Measure  string
	Of       int64             // checkpoints, evenly over the run
	Evaluate map[string]string // flags of evaluate for it, instead of the experiment's
}

// Saturation is how curves of what an energy tells apart show that it has become one number
// for everything, and with its slope all learning by it has ended: each of Curves, of a
// measure at checkpoints, stays within Within of where it ends, at Least checkpoints, the last
// among them.
type Saturation struct {
	Curves []string
	Within float64
	Least  int
}

// Curve is a number over steps that is kept of each cell: a measure at
// checkpoints, or a loss of metrics.jsonl.
type Curve struct {
	Name    string
	Measure string // evaluated after every Every steps
	Every   int64
	Loss    string // of metrics.jsonl, thinned
}

// Figure is a plot of a curve, a line for each row.
type Figure struct {
	File       string // without .png; the experiment's name comes before it
	Title      string
	X, Y       string // what the axes are
	Curve      string
	Beside     string   // another curve of each row, dashed; "" for none
	Rows       []string // nil: all
	LogX, LogY bool
	// Low and High are what the Y axis shows; both 0 is all there is. A curve ends
	// where it leaves them.
	Low, High float64
}

// Picture is a file in the run directory of some rows: a PNG, or a text in lines.
type Picture struct {
	Title string
	Glob  string   // in the run directory; the last match counts
	Asks  string   // the word of evaluate --measures that makes it; "" if another program does
	Rows  []string // nil: all
}

// Compute makes the numbers of one cell of a computed experiment.
type Compute func(ctx context.Context, in Computing) (Computed, error)

// Computing is what a Compute function is given.
type Computing struct {
	Row     Row
	Seed    uint64
	Data    string // --data, empty if the experiment needs none
	Threads int
	// Tell says how far the computation is.
	Tell func(done, total int64)
}

// Computed is what a Compute function found: the columns of its row, but those
// that it says in Notes could not be had.
type Computed struct {
	Values map[string]float64         `json:"values"`
	Curves map[string][]measure.Point `json:"curves,omitempty"`
	Notes  []string                   `json:"notes,omitempty"` // sentences for the report
}

// Sets are the data sets of some rows, each once, where rows have their own.
func Sets(rows []Row) []DataSet {
	var sets []DataSet
	for _, r := range rows {
		if r.Data != nil && !slices.ContainsFunc(sets, func(d DataSet) bool { return d.Name == r.Data.Name }) {
			sets = append(sets, *r.Data)
		}
	}
	return sets
}

// Row is the row of that name.
func (e Experiment) Row(name string) (Row, bool) {
	for _, r := range e.Rows {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

// AllChecks are the checks, those of the rows' numbers first.
func (e Experiment) AllChecks() []judge.Check {
	var all []judge.Check
	for _, r := range e.Rows {
		for _, column := range e.Columns {
			if want, ok := r.Expect[column]; ok && want.Judged() {
				all = append(all, judge.Near{Value: judge.Value{Row: r.Name, Measure: column}, Want: want})
			}
		}
	}
	return append(all, e.Checks...)
}
