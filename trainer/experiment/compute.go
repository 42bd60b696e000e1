package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/plan"
)

// compute does a cell of a computed experiment, as a process of its own: experiment
// compute.
func (b *bench) compute(ctx context.Context) (cell.Measured, error) {
	args := append([]string{"compute", b.t.Experiment, "--row=" + b.t.Row, fmt.Sprintf("--seed=%d", b.t.Seed), fmt.Sprintf("--threads=%d", b.w.threads)}, b.onData()...)
	b.command = append(b.command, append([]string{"experiment"}, args...))
	var out bytes.Buffer
	if err := b.program(ctx, "experiment", b.w.tools.self, args, &out); err != nil {
		return cell.Measured{}, err
	}
	var c plan.Computed
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		return cell.Measured{}, fmt.Errorf("experiment compute: want one JSON object: %w", err)
	}
	return cell.Measured{Values: c.Values, Curves: c.Curves, Notes: c.Notes}, nil
}

const computeAbout = `experiment compute does one cell of a computed experiment and prints its numbers
as JSON; experiment run starts it for every cell.

  experiment compute bias --row k-300 --data shards/frey`

// compute is the command compute.
func (a app) compute(ctx context.Context, args []string) error {
	var row string
	in := plan.Computing{}
	fs := pflag.NewFlagSet("compute", pflag.ContinueOnError)
	fs.StringVar(&row, "row", "", "row of the experiment (required)")
	fs.Uint64Var(&in.Seed, "seed", 1, "seed of everything that is random")
	fs.StringVar(&in.Data, "data", "", "the data set: a directory made by mkshards, or a built-in one")
	fs.IntVar(&in.Threads, "threads", 0, "threads; 0 is OMP_NUM_THREADS or, without it, all cores")
	if err := a.parse(fs, computeAbout, args); err != nil {
		return err
	}
	e, err := a.one(fs)
	if err != nil {
		return err
	}
	if e.Compute == nil {
		return cliflag.Usage("%s is no computed experiment: experiment run %s trains its cells", e.Name, e.Name)
	}
	var ok bool
	if in.Row, ok = e.Row(row); !ok {
		return cliflag.Usage("--row %q: want one of %s", row, strings.Join(rowNames(e), ", "))
	}
	if (in.Data == "") != (e.Data == nil) {
		return cliflag.Usage("--data %q: %s is computed on %s", in.Data, e.Name, dataName(e))
	}
	show := progressbar.NewPhases(a.stderr)
	in.Tell = func(done, total int64) { show.Progress(e.Name, "parts/s", done, total) }
	found, err := e.Compute(ctx, in)
	show.End()
	if err != nil {
		return err
	}
	for _, column := range e.Measured(in.Row) {
		if _, ok := found.Values[column]; !ok && len(found.Notes) == 0 {
			return fmt.Errorf("%s %s: no %s came out, and nothing says why", e.Name, row, column)
		}
	}
	return json.NewEncoder(a.stdout).Encode(found)
}
