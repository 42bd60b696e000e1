package main

import (
	"fmt"
	"strings"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
)

// foretold is what a model says of a report that it was not fitted to.
type foretold struct {
	files []string
	model cost.Model
}

// foretell fits a model to reports in files.
func foretell(files []string) (*foretold, error) {
	var reports []cost.Report
	for _, file := range files {
		r, err := cost.Read(file)
		if err != nil {
			return nil, fmt.Errorf("--predict: %w", err)
		}
		reports = append(reports, r)
	}
	m, err := simulate.Fit(reports)
	if err != nil {
		return nil, fmt.Errorf("--predict %s: %w", strings.Join(files, ","), err)
	}
	return &foretold{files, m}, nil
}

// text is predicted and measured times of each size of r.
func (f *foretold) text(r cost.Report) (string, error) {
	c := simulate.Cluster{Ranks: r.Ranks, Cores: r.CPUs, Costs: f.model}
	if r.Machines == 1 {
		c.Together = len(r.Ranks)
	}
	out := fmt.Sprintf("# predicted by the schedule, with costs fitted to %s\n", strings.Join(f.files, ", "))
	for _, part := range []struct {
		name  string
		costs cost.Costs
	}{{"within a host", f.model.Within}, {"between hosts", f.model.Between}} {
		out += fmt.Sprintf("# %-14s %s us a round, %s us a message, %s ns a byte, %s ns a byte to reduce\n", part.name,
			within(part.costs.Latency), within(part.costs.Message), within(part.costs.PerByte), within(part.costs.Reduce))
	}
	out += fmt.Sprintf("#%9s %12s %12s %7s\n", "bytes", "predicted us", "median us", "error %")
	for _, s := range r.Sizes {
		us, err := simulate.Collective(c, collective.AllReduce, s.Bytes)
		if err != nil {
			return "", err
		}
		out += fmt.Sprintf("%10d %12.1f %12.1f %+7.0f\n", s.Bytes, us, s.Median, 100*(us/s.Median-1))
	}
	for _, doubt := range f.model.Doubts {
		out += "# doubt: " + doubt + "\n"
	}
	return out, nil
}

// within is an estimate and its bounds.
func within(i cost.Interval) string {
	return fmt.Sprintf("%s (%s to %s)", short(i.Value), short(i.Low), short(i.High))
}
