// Command sample draws pictures from a trained model.
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

	"ebtrain/trainer/job"
	"ebtrain/trainer/picture"
)

const help = `sample draws pictures from the newest checkpoint of a run and writes them as one PNG.

  sample --run runs/celeba32 --n 64 --out grid.png
`

// options are the flags of sample.
type options struct {
	run, out, stats, device string
	n, threads, scale       int
	seed                    uint64
}

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(job.Exit("sample", err, os.Stderr))
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("sample", pflag.ContinueOnError)
	fs.StringVar(&o.run, "run", "", "run directory of a trained model (required)")
	fs.StringVar(&o.out, "out", "", "PNG file to write (required)")
	fs.IntVar(&o.n, "n", 64, "number of pictures")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the latents")
	fs.StringVar(&o.stats, "stats", "batch", "batch norm's statistics: batch (as the released code samples) or running")
	fs.IntVar(&o.scale, "scale", 0, "magnification; 0 makes small pictures visible")
	fs.StringVar(&o.device, "device", "auto", "where to compute: "+job.Devices)
	fs.IntVar(&o.threads, "threads", 0, "threads; 0 is all cores")
	if err := job.ParseFlags(fs, args, stdout, help); err != nil {
		return o, err
	}
	switch {
	case o.run == "":
		return o, job.Usage("--run is required: the --out of a train run")
	case o.out == "":
		return o, job.Usage("--out is required: the PNG file to write")
	case filepath.Ext(o.out) != ".png":
		return o, job.Usage("--out %s: want a name that ends in .png", o.out)
	case o.n < 1:
		return o, job.Usage("want --n of at least 1, got %d", o.n)
	case o.scale < 0:
		return o, job.Usage("want --scale of at least 0, got %d", o.scale)
	case job.Modes[o.stats] == 0:
		return o, job.Usage("unknown --stats %q: want batch or running", o.stats)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	backend, err := job.OpenBackend(o.device, o.threads, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	trained, err := job.LoadTrained(o.run, backend, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	images, err := job.Samples(ctx, trained, backend, job.Modes[o.stats], o.n, o.seed)
	if err != nil {
		return err
	}
	grid, err := picture.Grid(picture.Signed(job.Sizes(images)), o.scale)
	if err != nil {
		return err
	}
	if err := picture.WritePNG(o.out, grid); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d samples of %s after %d steps: %s\n", o.n, o.run, trained.State.Step, o.out)
	return err
}
