package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ebtrain/launch/exitcode"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
	"ebtrain/trainer/stepbench/flops"
)

// compare trains a cell once on each number of ranks, and measures what differs.
func (b *bench) compare(ctx context.Context) (cell.Measured, error) {
	var e measure.Evidence
	for _, ranks := range b.w.e.Ranks {
		w, err := b.world(ctx, ranks)
		if err != nil {
			return cell.Measured{}, err
		}
		e.Worlds = append(e.Worlds, w)
	}
	var err error
	if e.Published, err = b.published(); err != nil {
		return cell.Measured{}, err
	}
	return b.measures(e)
}

// on is the run directory of a number of ranks.
func (b *bench) on(ranks int) string {
	return filepath.Join(b.t.Dir(), fmt.Sprintf("ranks-%d", ranks))
}

// world trains on so many ranks, unless that was done. A training that was interrupted
// begins anew: it has few steps.
func (b *bench) world(ctx context.Context, ranks int) (w measure.World, err error) {
	dir := b.on(ranks)
	of := fmt.Sprintf("--nproc-per-node=%d", ranks)
	training := slices.Concat(b.t.settings, b.onData(), plan.Flags(map[string]string{
		"out": dir, "threads": fmt.Sprint(b.w.threads), "log-every": "1", "ckpt-every": "0", "samples": "0", "sample-every": "0"}))
	b.command = append(b.command, append([]string{"ddplaunch", of, "train"}, training...))
	if b.trained(ranks) == nil {
		if err := os.RemoveAll(dir); err != nil {
			return w, err
		}
		if err := b.launch(ctx, ranks, "train", b.w.tools.launch, append([]string{of, b.w.tools.train}, training...), nil); err != nil {
			return w, orDiverged(err, func() bool { return runDiverged(dir) })
		}
		if err := os.RemoveAll(rundir.Layout(dir).Ckpt()); err != nil { // nobody goes on from it
			return w, err
		}
	}
	w = measure.World{Ranks: ranks, CPU: b.trained(ranks).CPU}
	if w.Records, err = rundir.ReadMetrics(rundir.Layout(dir).MetricsFile()); err != nil {
		return w, err
	}
	if err := measure.Lost(w.Records, b.t.steps, 1); err != nil {
		return w, notMeasured(err)
	}
	s, err := ranWith(dir)
	w.Batch = s.Batch
	return w, err
}

// trained is the training on so many ranks that came to its end; nil if there is none.
func (b *bench) trained(ranks int) *cell.Piece {
	for i, p := range b.begun.Pieces {
		if p.Ranks == ranks && p.Ended == fmt.Sprintf("exit %d", exitcode.Done) {
			return &b.begun.Pieces[i]
		}
	}
	return nil
}

// ranWith are the settings of a run.
func ranWith(dir string) (settings.Settings, error) {
	c, err := rundir.ReadConfig(dir)
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Parse(c.Settings)
}

// published is the run of the row's preset, with the operations of its step for the
// data that were trained on.
func (b *bench) published() (measure.Published, error) {
	var none measure.Published
	m, err := settings.MethodOf(b.t.row.Preset)
	if err != nil {
		return none, err
	}
	preset, err := m.Preset(b.t.row.Preset)
	if err != nil {
		return none, err
	}
	s, err := ranWith(b.on(b.w.e.Ranks[0]))
	if err != nil {
		return none, err
	}
	model, err := s.Build()
	if err != nil {
		return none, err
	}
	n, err := operations(model, preset.Batch)
	const tera = 1e12
	return measure.Published{Steps: preset.Steps, Batch: preset.Batch, TeraOps: float64(n) / tera}, err
}

// operations are those of the convolutions and matrix products of a step of a model;
// of the longest, where there are several.
func operations(model algo.Model, batch int) (n int64, err error) {
	step, _, err := algo.StepOf(model, 0, 1, batch)
	stages, also := algo.StagesOf(model, 0, 1, batch)
	if err := errors.Join(err, also); err != nil {
		return 0, err
	}
	n = flops.Of(step).Total()
	for _, s := range stages {
		n += int64(s.Times) * flops.Of(s.Graph).Total()
	}
	return n, nil
}
