// Command sample draws pictures, sentences or points from a trained model.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"ebtrain/data/atomicfile"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// program is what --help shows of sample besides the flags themselves.
var program = cliflag.Program{
	Name: "sample",
	About: `sample draws from a checkpoint of a run, the newest unless another is named, and
writes one PNG: a grid of pictures, or a scatter plot of points of the plane. Of
a model of sentences it writes a text, a sentence a line, and points of any
number of values as numbers, as the table has them that the model was trained
on: a row each, below the names of its columns, or an array of NumPy's. A PNG
that is there is replaced; what else is there with --force only.

  sample --run runs/celeba32 --n 64 --out grid.png
  sample --run runs/snli --n 10 --out samples.txt
  sample --run runs/measured --n 1000 --out samples.csv

With --given it draws samples with the latents of a data set's pictures, each
shown below its picture; with --interpolate rows of samples whose latents go
from those of one picture to those of another, between the two, all samples of a
row with the same noise:

  sample --run runs/mnist --given shards/mnist --interpolate 8 --out rows.png

or, with --mirror 3, from three times the latents of one picture to minus three
times.
`,
	Groups: []cliflag.Group{
		{Title: "What is drawn", Flags: []string{"run", "step", "ema", "n", "seed", "stats", "given", "split", "interpolate", "mirror"}},
		{Title: "The picture", Flags: []string{"out", "force", "scale"}},
		{Title: "The machine", Flags: []string{"device", "threads"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

const (
	mostSamples = 1 << 20
	mostColumns = 1 << 10
	mostMirror  = 1000
	usualRows   = 8 // of --interpolate
)

// options are the flags of sample.
type options struct {
	run, out, stats, device string
	of                      trained.Choice
	n, threads, scale       int
	seed                    uint64
	given, split            string // data whose latents are given; "" for none
	interpolate             int    // samples of a row; 0 makes no rows
	mirror                  float64
	force                   bool // replaces what is at out, whatever it is
}

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("sample", chosen.Misnamed(err), os.Stderr))
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := pflag.NewFlagSet("sample", pflag.ContinueOnError)
	flags.StringVar(&o.run, "run", "", "run directory of a trained model (required)")
	flags.StringVar(&o.out, "out", "", "file to write (required): its name ends in .png, of sentences in .txt, of points in .csv, .tsv or .npy (or, of two values, .png)")
	flags.BoolVar(&o.force, "force", false, "replace the file at --out, also if it is a text or numbers, which may be somebody's, or no PNG")
	flags.Int64Var(&o.of.Step, "step", trained.Newest, "steps after which the checkpoint was written; -1 is the newest")
	flags.BoolVar(&o.of.Averages, "ema", false, "draw from the moving averages of the weights, which train --ema keeps")
	flags.IntVar(&o.n, "n", 64, "number of samples; with --interpolate number of rows, 8 unless it is said")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all random draws")
	flags.StringVar(&o.stats, "stats", "batch", "batch norm's statistics: batch (as the released code samples) or running; with --given they are always the running ones")
	flags.StringVar(&o.given, "given", "", "data set whose first pictures' posterior means are the latents: a directory made by mkshards, or a built-in one")
	flags.StringVar(&o.split, "split", "test", "split of --given")
	flags.IntVar(&o.interpolate, "interpolate", 0, "with --given: samples of a row, at equal distances between two pictures' latents; 0 makes no rows")
	flags.Float64Var(&o.mirror, "mirror", 0, "with --interpolate: from so many times the latents of one picture to as many times their negative, as in 3; 0 is between two pictures")
	flags.IntVar(&o.scale, "scale", 0, "magnification; 0 makes small pictures visible")
	flags.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	flags.IntVar(&o.threads, "threads", 0, "threads; 0 is OMP_NUM_THREADS or, without it, all cores")
	if err := program.Parse(flags, args, stdout); err != nil {
		return o, err
	}
	switch {
	case o.run == "":
		return o, cliflag.Usage("--run is required: the --out of a train run")
	case o.out == "":
		return o, cliflag.Usage("--out is required: the file to write, .png or, of sentences, .txt, of points, .csv")
	case kinds[filepath.Ext(o.out)] == "":
		return o, cliflag.Usage("--out %s: want a name that ends in .png, in .txt for sentences, or in .csv, .tsv or .npy for points", o.out)
	case o.of.Step < trained.Newest:
		return o, cliflag.Usage("want --step of at least 0, or %d for the newest checkpoint, got %d", trained.Newest, o.of.Step)
	case o.n < 1 || o.n > mostSamples:
		return o, cliflag.Usage("want --n from 1 to %d, got %d", mostSamples, o.n)
	case o.given == "" && (flags.Changed("split") || flags.Changed("interpolate")):
		return o, cliflag.Usage("--split and --interpolate go with --given, the data set whose latents are given")
	case o.interpolate != 0 && (o.interpolate < 2 || o.interpolate > mostColumns):
		return o, cliflag.Usage("want --interpolate from 2 to %d, or 0, got %d", mostColumns, o.interpolate)
	case flags.Changed("mirror") && o.interpolate == 0:
		return o, cliflag.Usage("--mirror goes with --interpolate, the samples of a row")
	case !(o.mirror >= 0 && o.mirror <= mostMirror):
		return o, cliflag.Usage("want --mirror from 0 to %d, got %v", mostMirror, o.mirror)
	case o.scale < 0 || o.scale > 64:
		return o, cliflag.Usage("want --scale from 0 to 64, got %d", o.scale)
	case o.given != "" && flags.Changed("stats"):
		return o, cliflag.Usage("--stats goes without --given: samples of given latents are drawn by batch norm's running statistics alone")
	case trained.Modes[o.stats] == 0:
		return o, cliflag.Usage("unknown --stats %q: want batch or running", o.stats)
	}
	if o.interpolate > 0 && !flags.Changed("n") {
		o.n = usualRows
	}
	return o, cliflag.AsUsage(device.Check(o.device, device.F32, o.threads))
}

// checkOut reports, before the work, a file that cannot be written, or is not to be replaced:
// a text may be the one that the model was trained on.
func checkOut(file string, force bool) error {
	if err := atomicfile.Check(file); err != nil {
		return fmt.Errorf("--out %s: %w", file, err)
	}
	if err := checkReplace(file); err != nil && !force {
		return fmt.Errorf("--out %s: %w: give another name, or replace it with --force", file, err)
	}
	return nil
}

func checkReplace(file string) error {
	if filepath.Ext(file) == ".png" {
		return picture.CheckReplace(file)
	}
	if st, err := os.Stat(file); err == nil && st.Size() > 0 {
		return errors.New("it is there already")
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	defer cliflag.EndAtSignal("sample", "nothing was drawn", stderr)()
	if err := checkOut(o.out, o.force); err != nil {
		return err
	}
	backend, err := device.Open(device.Config{Device: o.device, Precision: device.F32, Threads: o.threads, Smaller: "choose a smaller --n"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	log := slog.New(plainlog.New("sample", stderr))
	run, err := trained.Load(o.run, o.of, backend, log)
	if err != nil {
		return err
	}
	d := &drawing{o: o, backend: backend, run: run, takes: run.Model.Takes(), show: progressbar.NewPhases(stderr)}
	if err := d.check(); err != nil {
		return err
	}
	drawn, err := d.draw(ctx)
	d.show.End()
	if err != nil {
		return err
	}
	if err := d.tally.tell(run, log); err != nil {
		return err
	}
	if err := drawn.write(o.out, d.takes); err != nil {
		return cliflag.Unwritten("--out", "another --out", err)
	}
	_, err = fmt.Fprintf(stdout, "%s of %s after %s: %s\n", drawn.what, o.run, run.After(), o.out)
	return err
}
