package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/plan"
)

// list shows the experiments and how many cells of each are finished.
func (a app) list(args []string) error {
	fs := pflag.NewFlagSet("list", pflag.ContinueOnError)
	var out string
	outFlag(fs, &out)
	const about = `experiment list shows the experiments, how many of their cells are finished, and
the data that they need; of those that are named also what they are to show.

  experiment list --out runs/experiments
  experiment list board frey`
	if err := a.parse(fs, about, args); err != nil {
		return err
	}
	chosen, err := a.chosen(fs.Args())
	if err != nil {
		return err
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	add := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // text takes everything
	add("experiment\trows\tseeds\tfinished\tdata\n")
	var damage []error
	for _, e := range chosen {
		done, damaged, err := finished(out, e)
		if err != nil {
			return err
		}
		damage = append(damage, damaged...)
		add("%s\t%d\t%d\t%d of %d\t%s\n", e.Name, len(e.Rows), len(e.Seeds), done, len(e.Rows)*len(e.Seeds), dataName(e))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, err := range damage {
		fmt.Fprintf(&text, "\n%v\n", err)
	}
	if fs.NArg() == 0 {
		text.WriteString("\nexperiment list NAME says what one is to show\n")
	} else {
		for _, e := range chosen {
			fmt.Fprintf(&text, "\n%s: %s\n", e.Name, e.About)
		}
	}
	_, err = io.WriteString(a.stdout, text.String())
	return err
}

func dataName(e plan.Experiment) string {
	if e.Data == nil {
		return "none"
	}
	return e.Data.Name
}

// finished counts the finished cells of the experiment's own seeds, and says which are
// damaged.
func finished(out string, e plan.Experiment) (n int, damage []error, err error) {
	for _, c := range cells(out, e, e.Rows, e.Seeds) {
		s, err := c.Load()
		switch {
		case damaged(err):
			damage = append(damage, err)
		case err != nil:
			return 0, nil, err
		case s.Finished():
			n++
		}
	}
	return n, damage, nil
}

// cells are those of some rows and seeds: all rows of one seed, then the next.
func cells(out string, e plan.Experiment, rows []plan.Row, seeds []uint64) []cell.Cell {
	var all []cell.Cell
	for _, seed := range seeds {
		for _, r := range rows {
			all = append(all, cell.Cell{Root: out, Experiment: e.Name, Row: r.Name, Seed: seed})
		}
	}
	return all
}
