package main

import (
	"context"
	"fmt"
	"image"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

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
	picture image.Image  // nil of sentences
	text    *exec.Tensor // of sentences
	what    string       // "64 samples"
}

// check reports what this model cannot be asked for.
func (d *drawing) check() error {
	text := filepath.Ext(d.o.out) == ".txt"
	switch {
	case trained.Sentences(d.takes) != text:
		return fmt.Errorf("--out %s: the samples of %s are %s: sentences go into a file whose name ends in .txt, all others into a .png", d.o.out, d.o.run, trained.Noun(d.takes))
	case text && (d.o.scale != 0 || d.o.given != ""):
		return fmt.Errorf("--scale and --given are of pictures, and the samples of %s are sentences: leave them out", d.o.run)
	case text:
		return nil
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
	case d.o.mirror > 0:
		return d.mirrored(ctx)
	case d.o.given != "" && d.o.interpolate > 0:
		return d.rows(ctx)
	case d.o.given != "":
		return d.below(ctx)
	}
	x, err := d.run.Samples(ctx, d.backend, trained.Modes[d.o.stats], d.o.n, d.o.seed, "--n", d.progress)
	if err != nil {
		return drawn{}, err
	}
	if trained.Sentences(d.takes) {
		return drawn{text: x, what: english.Plural(d.o.n, "sentence", "")}, nil
	}
	m, err := trained.Picture(x, d.takes, d.o.scale)
	return drawn{picture: m, what: english.Plural(d.o.n, "sample", "")}, err
}

func (d *drawing) progress(done, of int) {
	d.show.Progress("sample", "transitions/s", int64(d.before*of+done), int64(max(1, d.parts)*of))
}
