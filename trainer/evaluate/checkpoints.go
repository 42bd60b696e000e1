package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/plainlog"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/trained"
	"ebtrain/trainer/world"
)

// allSteps is the --step of all checkpoints that the run has.
const allSteps = "all"

// readSteps reads --step: steps of checkpoints, rising, or trained.Newest alone, or nil for
// all.
func readSteps(text string) ([]int64, error) {
	if text == allSteps {
		return nil, nil
	}
	var steps []int64
	for word := range strings.SplitSeq(text, ",") {
		step, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		switch {
		case err != nil:
			return nil, cliflag.Usage("--step %q: want the steps of a checkpoint, those of several with commas between, %s, or %d for the newest", text, allSteps, trained.Newest)
		case step < trained.Newest || step == trained.Newest && text != word:
			return nil, cliflag.Usage("want --step of at least 0, or %d for the newest checkpoint alone, got %s", trained.Newest, text)
		case slices.Contains(steps, step):
			return nil, cliflag.Usage("--step names %d twice", step)
		}
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps, nil
}

// several says whether more than one checkpoint is asked for.
func (o options) several() bool { return len(o.steps) != 1 }

// evaluateEach measures several checkpoints of a run, one after the other. What one is
// opened with is closed before the next: a device keeps variables until then. One that has
// diverged is said to, and the others are measured; so they are where one is damaged that
// was not named.
func evaluateEach(ctx context.Context, o options, w *world.World, stdout, stderr io.Writer) error {
	log := slog.New(plainlog.New("evaluate", stderr))
	steps, err := trained.Checkpoints(o.run, o.steps, func(err error) { ckpt.WarnSkipped(log, err) })
	if err != nil {
		return err
	}
	if w != nil { // the run may go on meanwhile, or each host have its own copy of it
		if err := world.Same(ctx, w.Rank(), map[string]string{"checkpoints": fmt.Sprint(steps)}, nil, "", w.Exchange); err != nil {
			return err
		}
	}
	chart := ""
	if len(steps) > 1 && (w == nil || w.Rank() == 0) {
		if chart, err = o.chartFile(); err != nil {
			return err
		}
	}
	var t table
	var undrawn []error
	for i, step := range steps {
		o.of.Step = step
		row := tableRow{step: step}
		err := withDevice(ctx, o, w, stderr, func(e *evaluation) (err error) {
			if i > 0 { // what it says to begin with was said
				e.log = slog.New(slog.DiscardHandler)
			}
			e.show.Line(fmt.Sprintf("evaluate: step %d, checkpoint %d of %d", step, i+1, len(steps)))
			row.report, err = e.one(ctx)
			return err
		})
		switch _, ok := errors.AsType[*eval.NotFiniteError](err); {
		case ok:
			row.diverged, err = err.Error(), nil
		case row.report != nil:
			undrawn, err = append(undrawn, err), nil
		}
		if err == nil && o.json {
			err = row.writeJSON(stdout)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("step %d: %w", step, err), t.unlessJSON(o.json, stdout))
		}
		t = append(t, row)
	}
	return errors.Join(append(undrawn, t.unlessJSON(o.json, stdout), t.drawInto(chart, stderr), t.allDiverged())...)
}
