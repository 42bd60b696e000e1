// Command curves draws what runs have logged: a picture with a curve for each number
// that metrics.jsonl has, and a table of them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"ebtrain/data/atomicfile"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/picture"
)

// program is what --help shows of curves besides the flags themselves.
var program = cliflag.Program{
	Name: "curves",
	About: `curves draws the losses of a run, or of several beside each other, into one PNG,
and prints of each where it began and where it is. The run may still go on.

  curves runs/mine                               into runs/mine/curves.png
  curves runs/slow runs/quick --out rates.png    two runs in each diagram
  curves runs/slow runs/quick --out t.png --x hours --columns recon,step_ms

A line is the mean of neighbouring steps, and the band around it has eight in
ten of them; of few steps all are drawn. A diagram leaves out the hundredth part
of the values that is least, and that which is most, so that the first steps, or
a jump, do not make the rest flat; --whole shows all.
`,
	Groups: []cliflag.Group{
		{Title: "What is drawn", Flags: []string{"columns", "x", "from-step", "whole"}},
		{Title: "The picture", Flags: []string{"out"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
	Args: "RUN...",
}

// options are the arguments of curves.
type options struct {
	runs, columns []string // columns: none are the losses
	out           string
	x             axis
	from          int64 // step of the first line that is drawn
	whole         bool  // nothing is cut off
}

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("curves", err, os.Stderr))
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	x := string(steps)
	flags := pflag.NewFlagSet("curves", pflag.ContinueOnError)
	flags.StringSliceVar(&o.columns, "columns", nil, "what is drawn, as in recon,step_ms; without it all losses")
	flags.StringVar(&x, "x", x, "what the horizontal axis is: steps, samples (of all ranks) or hours (since the first line, pauses included)")
	flags.Int64Var(&o.from, "from-step", 0, "first step that is drawn")
	flags.BoolVar(&o.whole, "whole", false, "show all values, also the few far from the others")
	flags.StringVar(&o.out, "out", "", "file to write, a PNG; of one run curves.png in its folder unless it is said")
	if err := program.Parse(flags, args, stdout); err != nil {
		return o, err
	}
	o.runs, o.x = flags.Args(), axis(x)
	switch {
	case len(o.runs) == 0:
		return o, cliflag.Usage("want at least one run: the --out of a train run, as in curves runs/mine")
	case slices.Contains(o.runs, ""):
		return o, cliflag.Usage("a run's folder is empty: want the --out of a train run")
	case len(o.runs) > 1 && o.out == "":
		return o, cliflag.Usage("--out is required for several runs: the file to write, as in --out curves.png")
	case o.out == "":
		o.out = filepath.Join(o.runs[0], "curves.png")
	case filepath.Ext(o.out) != ".png":
		return o, cliflag.Usage("--out %s: want a name that ends in .png", o.out)
	}
	switch {
	case o.columns != nil && len(o.columns) == 0:
		return o, cliflag.Usage("--columns is empty: want names, as in recon,step_ms, or leave it out for all losses")
	case !slices.Contains(axes, o.x):
		return o, cliflag.Usage("unknown --x %q: want steps, samples or hours", x)
	case o.from < 0:
		return o, cliflag.Usage("want --from-step of at least 0, got %d", o.from)
	}
	return o, nil
}

// checkOut reports, before the work, a file that cannot be written or is no picture.
func checkOut(file string) error {
	if err := atomicfile.Check(file); err != nil {
		return fmt.Errorf("the picture %s cannot be written: %w: give another place with --out FILE.png", file, err)
	}
	if err := picture.CheckReplace(file); err != nil {
		return fmt.Errorf("--out %s: %w: give another name", file, err)
	}
	return nil
}

func run(_ context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	defer cliflag.EndAtSignal("curves", "nothing was drawn", stderr)()
	runs, err := o.read()
	if err != nil {
		return err
	}
	columns, err := o.choose(runs)
	if err != nil {
		return err
	}
	if err := checkOut(o.out); err != nil {
		return err
	}
	image, err := o.draw(runs, columns)
	if err != nil {
		return err
	}
	if err := picture.WritePNG(o.out, image); err != nil {
		return cliflag.Unwritten("--out", "another --out", err)
	}
	if err := table(stdout, runs, columns); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, o.out)
	return err
}
