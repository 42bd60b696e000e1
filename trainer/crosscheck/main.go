// Command crosscheck writes what training steps, graphs of evaluation, samplers,
// statistics and networks of features give for small named cases, in full, for another
// program to compute again:
//
//	crosscheck --out dumps                    all of it
//	crosscheck --out dumps --cases lm,cd      steps and graphs of two cases
//	crosscheck --list
//
// The other programs are peers/*.py, PyTorch in float64; `make crosscheck` runs both.
// README.md says what is compared and how exactly.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
)

func main() {
	ctx, end := cliflag.UntilSignal(context.Background(), "the dumps are not complete")
	err := end(run(ctx, os.Args[1:], os.Stdout))
	os.Exit(cliflag.Exit("crosscheck", err, os.Stderr))
}

var program = cliflag.Program{
	Name: "crosscheck",
	About: `crosscheck writes what training steps, graphs of evaluation, samplers,
statistics and networks of features give for small named cases, as JSON files
that the PyTorch programs of peers/ read, which compute all of it again.

  crosscheck --out dumps
  python3 trainer/crosscheck/peers/compare.py dumps
`,
}

// options are the flags.
type options struct {
	out   string
	cases []string
	list  bool
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := pflag.NewFlagSet("crosscheck", pflag.ContinueOnError)
	fs.StringVar(&o.out, "out", "crosscheck-dumps", "folder for the files, made if need be")
	fs.StringSliceVar(&o.cases, "cases", nil, "cases to write, without statistics and networks of features; none: everything")
	fs.BoolVar(&o.list, "list", false, "list the cases and write nothing")
	return o, program.Parse(fs, args, out)
}

// run is the program, without the process around it.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if errors.Is(err, cliflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	cases, err := choose(o.cases)
	if err != nil {
		return err
	}
	if o.list {
		for _, k := range cases {
			if _, err := fmt.Fprintf(stdout, "%-18s %s\n", k.Name, k.Preset); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return err
	}
	for _, k := range cases {
		if err := k.write(ctx, o.out); err != nil {
			return fmt.Errorf("case %s: %w", k.Name, err)
		}
	}
	if len(o.cases) > 0 {
		return nil
	}
	s, err := statistics()
	if err != nil {
		return fmt.Errorf("statistics: %w", err)
	}
	if err := writeJSON(filepath.Join(o.out, "statistics.json"), s); err != nil {
		return err
	}
	n, err := networks(ctx)
	if err != nil {
		return fmt.Errorf("networks: %w", err)
	}
	return writeJSON(filepath.Join(o.out, "networks.json"), n)
}

// write writes what is compared of one case: NAME.step.json and, where wanted, NAME.graphs.json.
func (k testCase) write(ctx context.Context, dir string) error {
	u, err := k.build()
	if err != nil {
		return err
	}
	s, err := u.steps(ctx)
	if err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, k.Name+".step.json"), s); err != nil {
		return err
	}
	if !k.Graphs {
		return nil
	}
	g, err := u.graphs(ctx)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, k.Name+".graphs.json"), g)
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o666)
}
