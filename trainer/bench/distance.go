package main

import (
	"context"

	"ebtrain/trainer/stepbench/distance"
)

// look measures how far apart rank 0's processors are, which the others wait for in what
// comes next. The report has the range of all looks.
func (b *bench) look(ctx context.Context) error {
	if b.w.Rank() != 0 {
		return nil
	}
	d, err := distance.Measure(ctx)
	if err != nil || d.Missing != "" {
		return err
	}
	if len(b.r.Line) == 0 {
		b.r.Line = []float64{d.Nearest, d.Farthest}
	}
	b.r.Line[0], b.r.Line[1] = round(min(b.r.Line[0], d.Nearest), 1), round(max(b.r.Line[1], d.Farthest), 1)
	return nil
}

// named says what the processors are called, "" if that is not known.
func (r *Report) named() string {
	if r.CPU == "" {
		return ""
	}
	return " (" + r.CPU + ")"
}

// apart says how far apart they were, "" if that is not known.
func (r *Report) apart() string {
	if len(r.Line) != 2 {
		return ""
	}
	return ", " + distance.Apart(r.Line[0], r.Line[1])
}
