package main

import (
	"context"
	"fmt"
	"image"

	"ebtrain/ddp/exec"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/trained"
)

// drawing is one run of sample.
type drawing struct {
	o       options
	backend exec.Backend
	run     *trained.Run
	takes   algo.Inputs // of the model
	show    *progressbar.Phases
	// before is how many of the parts of equal length that are drawn are done; 0 parts
	// are one.
	before, parts int
}

// drawn is what was drawn.
type drawn struct {
	picture image.Image
	what    string // "64 samples"
}

// check reports what this model cannot be asked for.
func (d *drawing) check() error {
	switch {
	case !trained.Drawable(d.takes):
		return fmt.Errorf("the samples of %s are points of %d values: only pictures and points of 2 values are drawn", d.o.run, d.takes.Shape.Len())
	case !trained.Pictures(d.takes) && d.o.scale != 0:
		return fmt.Errorf("--scale %d magnifies pictures, and the samples of %s are points: leave it out", d.o.scale, d.o.run)
	case !trained.Pictures(d.takes) && d.o.given != "":
		return fmt.Errorf("--given shows samples below pictures, and the samples of %s are points: leave it out", d.o.run)
	}
	return nil
}

// draw draws what was asked for.
func (d *drawing) draw(ctx context.Context) (drawn, error) {
	switch {
	case d.o.given != "" && d.o.interpolate > 0:
		return d.rows(ctx)
	case d.o.given != "":
		return d.below(ctx)
	}
	x, err := d.run.Samples(ctx, d.backend, trained.Modes[d.o.stats], d.o.n, d.o.seed, "--n", d.progress)
	if err != nil {
		return drawn{}, err
	}
	m, err := trained.Picture(x, d.takes, d.o.scale)
	return drawn{m, fmt.Sprintf("%d samples", d.o.n)}, err
}

func (d *drawing) progress(done, of int) {
	d.show.Progress("sample", "transitions/s", int64(d.before*of+done), int64(max(1, d.parts)*of))
}
