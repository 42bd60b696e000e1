package main

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/rundir"
)

// axis is what the horizontal axis of all diagrams is.
type axis string

const (
	steps   axis = "steps"
	samples axis = "samples"
	hours   axis = "hours"
)

var axes = []axis{steps, samples, hours}

// history is what a run has logged, from the first step that is drawn on.
type history struct {
	name    string // as the legend has it
	records []rundir.Record
	begun   float64 // time of the run's first line, in seconds since 1970
}

// others are the columns of metrics.jsonl that are no losses.
var others = map[string]func(rundir.Record) float64{
	"samples_per_s": func(r rundir.Record) float64 { return r.SamplesPerS },
	"step_ms":       func(r rundir.Record) float64 { return r.StepMS },
	"data_ms":       func(r rundir.Record) float64 { return r.DataMS },
	"comm_ms":       func(r rundir.Record) float64 { return r.CommMS },
	"mem_bytes":     func(r rundir.Record) float64 { return float64(r.MemBytes) },
}

// read reads what the runs have logged.
func (o options) read() ([]history, error) {
	names := shortest(o.runs)
	all := make([]history, len(o.runs))
	for i, dir := range o.runs {
		if _, err := rundir.ReadConfig(dir); err != nil {
			return nil, err
		}
		file := rundir.Layout(dir).MetricsFile()
		records, err := rundir.ReadMetrics(file)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, fmt.Errorf("%s has no lines yet: a run has its first at the end of the first step", file)
		}
		if last := records[len(records)-1].Step; last < o.from {
			return nil, fmt.Errorf("--from-step %d: the last line of %s is of step %d", o.from, file, last)
		}
		h := history{name: names[i], begun: records[0].Time}
		h.records = slices.DeleteFunc(records, func(r rundir.Record) bool { return r.Step < o.from })
		if o.x == hours && slices.ContainsFunc(h.records, func(r rundir.Record) bool { return r.Time == 0 }) {
			return nil, fmt.Errorf("--x hours: %s has lines that do not say when they were written, of an older program: want --x steps or samples", file)
		}
		all[i] = h
	}
	return all, nil
}

// shortest are the shortest ends of paths, in whole names, that tell them apart.
func shortest(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		p = filepath.Clean(p)
		out[i] = filepath.Base(p)
		for rest := filepath.Dir(p); ambiguous(out[i], paths, i) && rest != "." && rest != "/"; rest = filepath.Dir(rest) {
			out[i] = filepath.Join(filepath.Base(rest), out[i])
		}
	}
	return out
}

// ambiguous says whether another of the paths ends as path i does, in end.
func ambiguous(end string, paths []string, i int) bool {
	for j, p := range paths {
		p = filepath.Clean(p)
		if j != i && (p == end || len(p) > len(end) && p[len(p)-len(end)-1:] == "/"+end) {
			return true
		}
	}
	return false
}

// choose is which columns are drawn: those that are named, or all losses, of which each
// run need not have every one.
func (o options) choose(runs []history) ([]string, error) {
	losses := map[string]bool{}
	for _, h := range runs {
		for _, r := range h.records {
			for name := range r.Losses {
				losses[name] = true
			}
		}
	}
	known := slices.Concat(slices.Sorted(maps.Keys(losses)), slices.Sorted(maps.Keys(others)))
	for _, name := range o.columns {
		if !slices.Contains(known, name) {
			return nil, cliflag.Usage("--columns %s: no run has logged it: %s", name, cliflag.OneOf(name, known))
		}
	}
	switch {
	case o.columns != nil:
		return o.columns, nil
	case len(losses) == 0:
		return nil, cliflag.Usage("no run has logged a loss: --columns says what else is drawn: %s", cliflag.OneOf("", known))
	}
	return known[:len(losses)], nil
}

// column are the places and values of a column that are numbers, and how many are none.
func (h history) column(name string, x axis) (xs, ys []float64, none int) {
	for _, r := range h.records {
		v, ok := r.Losses[name]
		if of := others[name]; !ok && of != nil {
			v, ok = of(r), true
		}
		switch {
		case !ok:
		case math.IsNaN(v) || math.IsInf(v, 0):
			none++
		default:
			xs, ys = append(xs, h.place(r, x)), append(ys, v)
		}
	}
	return xs, ys, none
}

// place is where a line stands on the axis.
func (h history) place(r rundir.Record, x axis) float64 {
	switch x {
	case samples:
		return float64(r.Samples)
	case hours:
		return (r.Time - h.begun) / 3600
	}
	return float64(r.Step)
}
