package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
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
	evidence, err := b.evidence(ctx)
	if err != nil {
		return cell.Measured{}, err
	}
	if evidence.Curves, err = b.curves(ctx, evidence); err != nil {
		return cell.Measured{}, err
	}
	return b.measures(evidence)
}

// measures are the numbers of the row's columns.
func (b *bench) measures(evidence measure.Evidence) (cell.Measured, error) {
	m := cell.Measured{Values: map[string]float64{}, Quality: evidence.Quality(), Curves: evidence.Curves}
	for _, name := range b.w.e.Measured(b.t.row) {
		one, _ := measure.Find(name) // the plan is valid
		v, err := one.Of(evidence)
		if errors.Is(err, measure.ErrLost) {
			continue // a note of the cell says why
		}
		if errors.Is(err, measure.ErrShort) {
			m.Notes = append(m.Notes, err.Error())
			continue
		}
		if err != nil {
			return m, notMeasured(err)
		}
		m.Values[name] = v
	}
	return m, nil
}

// notMeasured is the cell that a measure cannot be taken of. A number that is not
// finite is as good as a divergence: it would come out again.
func notMeasured(err error) error {
	return &brokenError{cell.Broken{Program: "measuring", Ended: "exit 0", Line: err.Error(), Diverged: errors.Is(err, measure.ErrNotFinite)}}
}

// sampled is the measure that says whether a row is sampled from.
const sampled = "sample-s"

// fisherLast is the measure of the last step, whichever was chosen.
const fisherLast = "fisher-last"

// energy is the word of evaluate --measures to which data sets beside its own matter.
const energy = "energy"

// choose is the step whose checkpoint is measured.
func (b *bench) choose(ctx context.Context) (int64, error) {
	sel := b.w.e.Select
	if sel == nil {
		return b.t.steps, nil
	}
	m, _ := measure.Find(sel.Measure) // the plan is valid
	best, at := math.Inf(1), b.t.steps
	every := max(1, b.t.steps/sel.Of)
	for step := every; step <= b.t.steps; step += every {
		fields, err := b.evaluate(ctx, b.asking(m.Asks, step, sel.Evaluate))
		if err != nil {
			return 0, err
		}
		v, err := m.Of(measure.Evidence{Evaluation: fields})
		if err != nil {
			return 0, notMeasured(err)
		}
		if v < best {
			best, at = v, step
		}
	}
	return at, nil
}

// evidence is what the run left, and what evaluate and sample add.
func (b *bench) evidence(ctx context.Context) (e measure.Evidence, err error) {
	if e.Records, err = rundir.ReadMetrics(rundir.Layout(b.t.Dir()).MetricsFile()); err != nil {
		return e, err
	}
	e.Lost = measure.Lost(e.Records, b.t.steps, b.logEvery())
	e.TrainCPU, e.TrainLost = b.begun.CPU("train"), slices.Contains(b.begun.Lost(), "train")
	if e.Step, err = b.choose(ctx); err != nil {
		return e, err
	}
	if asks := b.asks(); asks != "" {
		args := b.asking(asks, e.Step, b.w.e.Evaluate)
		b.command = append(b.command, append([]string{"evaluate"}, args...))
		if e.Evaluation, err = b.evaluate(ctx, args); err != nil {
			return e, err
		}
	}
	if last := slices.Contains(b.w.e.Measured(b.t.row), fisherLast); last && e.Step != b.t.steps {
		if e.Last, err = b.evaluate(ctx, b.asking("fisher", b.t.steps, b.w.e.Evaluate)); err != nil {
			return e, err
		}
	}
	return e, b.sample(ctx, &e)
}

// sample draws what the row is to draw.
func (b *bench) sample(ctx context.Context, e *measure.Evidence) error {
	if slices.Contains(b.t.row.Lacks, sampled) {
		return nil
	}
	draw := func(file string, flags map[string]string, more ...string) error {
		if flags == nil {
			return nil
		}
		out := filepath.Join(b.t.Dir(), file)
		if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an attempt that was stopped; sample replaces no text
			return err
		}
		args := append([]string{"--run=" + b.t.Dir(), "--out=" + out, fmt.Sprintf("--threads=%d", b.w.threads)}, more...)
		args = append(args, plan.Flags(flags)...)
		b.command = append(b.command, append([]string{"sample"}, args...))
		return b.program(ctx, "sample", b.w.tools.sample, args, nil)
	}
	file := "samples.png"
	if d := b.w.e.Data; d != nil && d.Sentences {
		file = "samples.txt"
	}
	if err := draw(file, b.w.e.Sample); err != nil {
		return err
	}
	if b.w.e.Sample != nil {
		e.SampleWall = b.begun.Pieces[len(b.begun.Pieces)-1].Wall
	}
	return draw("between.png", b.w.e.Between, "--given="+b.w.data)
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

// asking are the flags of evaluate that ask the checkpoint of a step for some
// measures.
func (b *bench) asking(measures string, step int64, flags map[string]string) []string {
	args := append([]string{"--json", "--run=" + b.t.Dir(), "--measures=" + measures, fmt.Sprintf("--step=%d", step), fmt.Sprintf("--threads=%d", b.w.threads)}, b.onData()...)
	if slices.Contains(strings.Split(measures, ","), energy) {
		args = append(args, b.w.beside...)
	}
	return append(args, plan.Flags(flags)...)
}

// evaluate runs evaluate, unless it was asked the same before.
func (b *bench) evaluate(ctx context.Context, args []string) (map[string]any, error) {
	question := strings.Join(args, "\x00")
	if fields, ok := b.answers[question]; ok {
		return fields, nil
	}
	var out bytes.Buffer
	if err := b.program(ctx, "evaluate", b.w.tools.evaluate, args, &out); err != nil {
		return nil, orDiverged(err, func() bool { return measure.Diverged(out.Bytes()) })
	}
	fields, err := measure.ReadEvaluation(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("evaluate --json: %w", err)
	}
	b.answers[question] = fields
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
			if points, err = measure.Curve(e, c.Loss); err != nil {
				return nil, notMeasured(err)
			}
		} else if points, err = b.checkpoints(ctx, c, e); err != nil {
			return nil, err
		}
		curves[c.Name] = points
	}
	return curves, nil
}

// checkpoints measures every checkpoint of a curve; that of the step that was
// chosen was measured, for e. A number that is not finite has no point, and neither has a
// checkpoint of which evaluate says that its numbers are not.
func (b *bench) checkpoints(ctx context.Context, c plan.Curve, e measure.Evidence) ([]measure.Point, error) {
	m, _ := measure.Find(c.Measure) // the plan is valid
	var points []measure.Point
	for step := c.Every; step <= b.t.steps; step += c.Every {
		at := measure.Evidence{Evaluation: e.Evaluation}
		if step != e.Step || !slices.Contains(b.w.e.Measured(b.t.row), c.Measure) {
			var err error
			at.Evaluation, err = b.evaluate(ctx, b.asking(m.Asks, step, b.w.e.Evaluate))
			if broken, ok := errors.AsType[*brokenError](err); ok && broken.Diverged {
				continue
			}
			if err != nil {
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
