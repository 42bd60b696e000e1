package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/experiment/results"
)

const reportAbout = `experiment report writes what came out of the experiments, of all or of those
that are named, as Markdown with plots.

  experiment report
  experiment report board frey --to RESULTS.md

Without --to the file is RESULTS.md in the folder of the experiments; plots are
in the folder of the same name beside it. Cells of another commit than the
newest one of their row are named and left out, and so are those of other data
than the newest cell, and those that run --steps tried out where others are
whole.`

// report is the command report.
func (a app) report(args []string) error {
	var out, to string
	fs := pflag.NewFlagSet("report", pflag.ContinueOnError)
	outFlag(fs, &out)
	fs.StringVar(&to, "to", "", "file to write, NAME.md; default is RESULTS.md in --out")
	if err := a.parse(fs, reportAbout, args); err != nil {
		return err
	}
	if to == "" {
		to = filepath.Join(out, "RESULTS.md")
	}
	if filepath.Ext(to) != ".md" {
		return cliflag.Usage("--to %s: want a name that ends in .md", to)
	}
	chosen := a.catalogue
	if fs.NArg() > 0 {
		chosen = nil
		for _, name := range fs.Args() {
			e, err := a.find(name)
			if err != nil {
				return err
			}
			chosen = append(chosen, e)
		}
	}
	return a.write(out, to, chosen)
}

func (a app) write(out, to string, chosen []plan.Experiment) error {
	var sheets []*results.Sheet
	var damage []error
	empty := true
	for _, e := range chosen {
		s, err := results.Load(out, e)
		if err != nil {
			return err
		}
		empty = empty && s.Empty()
		sheets, damage = append(sheets, s), append(damage, s.Damage()...)
	}
	if empty {
		return errors.Join(append(damage, fmt.Errorf("no cell is finished in %s: experiment run NAME does the cells of an experiment", out))...)
	}
	if err := results.Write(to, sheets); err != nil {
		return err
	}
	for _, s := range sheets {
		if _, err := fmt.Fprintln(a.stdout, s.Summary()); err != nil {
			return err
		}
	}
	for _, err := range damage {
		if _, err := fmt.Fprintf(a.stdout, "left out: %v\n", err); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.stdout, to)
	return err
}
