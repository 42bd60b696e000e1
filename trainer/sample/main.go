// Command sample draws pictures from a trained model.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// program is what --help shows of sample besides the flags themselves.
var program = cliflag.Program{
	Name: "sample",
	About: `sample draws pictures from the newest checkpoint of a run and writes them as one
PNG.

  sample --run runs/celeba32 --n 64 --out grid.png
`,
	Groups: []cliflag.Group{
		{Title: "What is drawn", Flags: []string{"run", "n", "seed", "stats"}},
		{Title: "The picture", Flags: []string{"out", "scale"}},
		{Title: "The machine", Flags: []string{"device", "threads"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// options are the flags of sample.
type options struct {
	run, out, stats, device string
	n, threads, scale       int
	seed                    uint64
}

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("sample", err, os.Stderr))
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := pflag.NewFlagSet("sample", pflag.ContinueOnError)
	flags.StringVar(&o.run, "run", "", "run directory of a trained model (required)")
	flags.StringVar(&o.out, "out", "", "PNG file to write (required)")
	flags.IntVar(&o.n, "n", 64, "number of pictures")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the latents")
	flags.StringVar(&o.stats, "stats", "batch", "batch norm's statistics: batch (as the released code samples) or running")
	flags.IntVar(&o.scale, "scale", 0, "magnification; 0 makes small pictures visible")
	flags.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	flags.IntVar(&o.threads, "threads", 0, "threads; 0 is all cores")
	if err := program.Parse(flags, args, stdout); err != nil {
		return o, err
	}
	switch {
	case o.run == "":
		return o, cliflag.Usage("--run is required: the --out of a train run")
	case o.out == "":
		return o, cliflag.Usage("--out is required: the PNG file to write")
	case filepath.Ext(o.out) != ".png":
		return o, cliflag.Usage("--out %s: want a name that ends in .png", o.out)
	case o.n < 1 || o.n > 1<<20:
		return o, cliflag.Usage("want --n from 1 to %d, got %d", 1<<20, o.n)
	case o.scale < 0 || o.scale > 64:
		return o, cliflag.Usage("want --scale from 0 to 64, got %d", o.scale)
	case trained.Modes[o.stats] == 0:
		return o, cliflag.Usage("unknown --stats %q: want batch or running", o.stats)
	}
	return o, cliflag.AsUsage(device.Check(o.device, device.F32, o.threads))
}

// checkOut reports, before the work, a file that cannot be written.
func checkOut(file string) error {
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		return fmt.Errorf("--out %s is a folder: give the name of a file in it", file)
	}
	folder := filepath.Dir(file)
	switch st, err := os.Stat(folder); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out %s: %w", file, err)
	case err != nil:
		return fmt.Errorf("--out %s: there is no folder %s: make it first", file, folder)
	case !st.IsDir():
		return fmt.Errorf("--out %s: %s is a file, not a folder", file, folder)
	}
	if err := picture.CheckFolder(folder); err != nil {
		return fmt.Errorf("--out %s: no file can be made there: %w", file, err)
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if err := checkOut(o.out); err != nil {
		return err
	}
	backend, err := device.Open(o.device, device.F32, o.threads, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	run, err := trained.Load(o.run, backend, slog.New(plainlog.New("sample", stderr)))
	if err != nil {
		return err
	}
	if !trained.Pictures(run.Model.Takes()) {
		return fmt.Errorf("the samples of %s are vectors of %d values, not pictures", o.run, run.Model.Takes().Shape.Len())
	}
	show := progressbar.NewPhases(stderr)
	progress := func(done, of int) { show.Progress("sample", "transitions/s", int64(done), int64(of)) }
	images, err := run.Samples(ctx, backend, trained.Modes[o.stats], o.n, o.seed, progress)
	show.End()
	if err != nil {
		return err
	}
	grid, err := picture.Grid(trained.Images(images, run.Model.Takes()), o.scale)
	if err != nil {
		return err
	}
	if err := picture.WritePNG(o.out, grid); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d samples of %s after %d steps: %s\n", o.n, o.run, run.State.Step, o.out)
	return err
}
