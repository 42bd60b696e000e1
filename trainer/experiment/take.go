package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

// take measures a run that is trained.
func (b *bench) take(ctx context.Context) (cell.Measured, error) {
	var m cell.Measured
	evidence, err := b.evidence(ctx)
	if err != nil {
		return m, err
	}
	m.Values = map[string]float64{}
	for _, name := range b.w.e.Measured(b.t.row) {
		one, _ := measure.Find(name) // the plan is valid
		v, err := one.Of(evidence)
		if errors.Is(err, measure.ErrShort) {
			m.Notes = append(m.Notes, err.Error())
			continue
		}
		if err != nil {
			return m, notMeasured(err)
		}
		m.Values[name] = v
	}
	m.Curves, err = b.curves(ctx, evidence)
	return m, err
}

// notMeasured is the cell that a measure cannot be taken of. A number that is not
// finite is as good as a divergence: it would come out again.
func notMeasured(err error) error {
	return &brokenError{cell.Broken{Program: "measuring", Ended: "exit 0", Line: err.Error(), Diverged: errors.Is(err, measure.ErrNotFinite)}}
}

// sampled is the measure that says whether a row is sampled from.
const sampled = "sample-s"

// evidence is what the run left, and what evaluate and sample add.
func (b *bench) evidence(ctx context.Context) (e measure.Evidence, err error) {
	if e.Records, err = rundir.ReadMetrics(rundir.Layout(b.t.Dir()).MetricsFile()); err != nil {
		return e, err
	}
	e.TrainCPU = b.begun.CPU("train")
	if asks := b.asks(); asks != "" {
		if e.Evaluation, err = b.evaluate(ctx, asks, b.t.steps); err != nil {
			return e, err
		}
	}
	if b.w.e.Sample == nil || slices.Contains(b.t.row.Lacks, sampled) {
		return e, nil
	}
	args := append([]string{"--run=" + b.t.Dir(), "--out=" + filepath.Join(b.t.Dir(), "samples.png"), fmt.Sprintf("--threads=%d", b.w.threads)}, plan.Flags(b.w.e.Sample)...)
	b.command = append(b.command, append([]string{"sample"}, args...))
	err = b.program(ctx, "sample", b.w.tools.sample, args, nil)
	e.SampleWall = b.begun.Pieces[len(b.begun.Pieces)-1].Wall
	return e, err
}

// asks are the words of evaluate --measures that the row's columns and pictures
// need.
func (b *bench) asks() string {
	words := measure.Asks(b.w.e.Measured(b.t.row)...)
	for _, p := range b.w.e.Pictures {
		if p.Asks != "" && (p.Rows == nil || slices.Contains(p.Rows, b.t.Row)) {
			words += "," + p.Asks
		}
	}
	return strings.TrimPrefix(words, ",")
}

// evaluate measures the checkpoint of a step; asks is what.
func (b *bench) evaluate(ctx context.Context, asks string, step int64) (map[string]any, error) {
	args := append([]string{"--json", "--run=" + b.t.Dir(), "--measures=" + asks, fmt.Sprintf("--step=%d", step), fmt.Sprintf("--threads=%d", b.w.threads)}, b.onData()...)
	args = append(args, plan.Flags(b.w.e.Evaluate)...)
	if step == b.t.steps {
		b.command = append(b.command, append([]string{"evaluate"}, args...))
	}
	var out bytes.Buffer
	if err := b.program(ctx, "evaluate", b.w.tools.evaluate, args, &out); err != nil {
		return nil, err
	}
	fields, err := measure.ReadEvaluation(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("evaluate --json: %w", err)
	}
	return fields, nil
}

// curves are the numbers over steps.
func (b *bench) curves(ctx context.Context, e measure.Evidence) (map[string][]measure.Point, error) {
	curves := map[string][]measure.Point{}
	for _, c := range b.w.e.Curves {
		if slices.Contains(b.t.row.Lacks, c.Name) {
			continue
		}
		var points []measure.Point
		var err error
		if c.Loss != "" {
			if points, err = measure.Curve(e.Records, c.Loss); err != nil {
				return nil, notMeasured(err)
			}
		} else if points, err = b.checkpoints(ctx, c, e); err != nil {
			return nil, err
		}
		curves[c.Name] = points
	}
	return curves, nil
}

// checkpoints measures every checkpoint of a curve; that of the last step was
// measured, for e. A number that is not finite has no point.
func (b *bench) checkpoints(ctx context.Context, c plan.Curve, e measure.Evidence) ([]measure.Point, error) {
	m, _ := measure.Find(c.Measure) // the plan is valid
	var points []measure.Point
	for step := c.Every; step <= b.t.steps; step += c.Every {
		at := measure.Evidence{Evaluation: e.Evaluation}
		if step < b.t.steps || !slices.Contains(b.w.e.Measured(b.t.row), c.Measure) {
			var err error
			if at.Evaluation, err = b.evaluate(ctx, m.Asks, step); err != nil {
				return nil, err
			}
		}
		v, err := m.Of(at)
		if errors.Is(err, measure.ErrNotFinite) {
			continue
		}
		if err != nil {
			return nil, notMeasured(err)
		}
		points = append(points, measure.Point{X: float64(step), Y: v})
	}
	return points, nil
}
