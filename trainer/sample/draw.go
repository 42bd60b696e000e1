package main

import (
	"context"
	"fmt"
	"image"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/picture"
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
	tally         tally
}

// drawn is what was drawn: one of the first three.
type drawn struct {
	picture image.Image
	text    *exec.Tensor // sentences
	numbers []float32    // points, (n, columns)
	columns []data.Column
	what    string // "64 samples"
}

// kinds are what the ends of names of files are for.
var kinds = map[string]string{".txt": "sentences", ".png": "pictures", ".csv": "points", ".tsv": "points", ".npy": "points"}

// check reports what this model cannot be asked for.
func (d *drawing) check() error {
	kind, is := kinds[filepath.Ext(d.o.out)], trained.Noun(d.takes)
	planar := kind == "pictures" && trained.Planar(d.takes)
	switch {
	case kind != is && kind == "pictures" && is == "points" && !planar:
		return fmt.Errorf("--out %s: the samples of %s are points of %d values, and only those of 2 have a picture: give a name that ends in .csv, .tsv or .npy", d.o.out, d.o.run, d.takes.Shape.Len())
	case kind != is && !planar:
		return fmt.Errorf("--out %s: the samples of %s are %s: sentences go into a file whose name ends in .txt, pictures into a .png, and points into a .csv, .tsv or .npy or, of 2 values, a .png", d.o.out, d.o.run, is)
	case is == "sentences" && (d.o.scale != 0 || d.o.given != ""):
		return fmt.Errorf("--scale and --given are of pictures, and the samples of %s are sentences: leave them out", d.o.run)
	case is == "points" && d.o.scale != 0:
		return fmt.Errorf("--scale %d magnifies pictures, and the samples of %s are points: leave it out", d.o.scale, d.o.run)
	case is == "points" && d.o.given != "":
		return fmt.Errorf("--given shows samples below pictures, and the samples of %s are points: leave it out", d.o.run)
	}
	return nil
}

// draw draws what was asked for.
func (d *drawing) draw(ctx context.Context) (drawn, error) {
	numbers := kinds[filepath.Ext(d.o.out)] == "points"
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
	d.tally.add(x, d.takes)
	if trained.Sentences(d.takes) {
		return drawn{text: x, what: english.Plural(d.o.n, "sentence", "")}, nil
	}
	out := drawn{what: english.Plural(d.o.n, "sample", "")}
	if numbers {
		out.numbers, out.columns = x.F32(), trained.ColumnsOf(d.takes, d.run.Settings.Columns)
		return out, nil
	}
	out.picture, err = trained.Picture(x, d.takes, d.o.scale)
	return out, err
}

// write writes it to a file.
func (d drawn) write(file string, in algo.Inputs) (err error) {
	switch {
	case d.text != nil:
		_, err = trained.WriteText(file, d.text, in)
	case d.numbers != nil:
		err = trained.WriteNumbers(file, d.numbers, d.columns)
	default:
		err = picture.WritePNG(file, d.picture)
	}
	return err
}

func (d *drawing) progress(done, of int) {
	d.show.Progress("sample", "transitions/s", int64(d.before*of+done), int64(max(1, d.parts)*of))
}
