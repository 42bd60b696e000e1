package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/experiment/results"
)

const reportAbout = `experiment report writes what came out of the experiments, of all or of those
that are named, as Markdown with plots. Those that were never begun are only
counted, unless they are named, or all are with --all.

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
	var every bool
	fs := pflag.NewFlagSet("report", pflag.ContinueOnError)
	outFlag(fs, &out)
	fs.BoolVar(&every, "all", false, "list experiments that were never begun, too")
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
	chosen, err := a.chosen(fs.Args())
	if err != nil {
		return err
	}
	return a.write(out, to, chosen, every || fs.NArg() > 0)
}

// chosen are the experiments of these names, or all if there are none.
func (a app) chosen(names []string) (all []plan.Experiment, err error) {
	if len(names) == 0 {
		return a.catalogue, nil
	}
	for _, name := range names {
		e, err := a.find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// write reports experiments; of all that were chosen, or of those that have been begun.
func (a app) write(out, to string, chosen []plan.Experiment, every bool) error {
	var sheets []*results.Sheet
	var damage []error
	empty, others := true, 0
	for _, e := range chosen {
		s, err := results.Load(out, e)
		if err != nil {
			return err
		}
		if !every && !s.Begun() {
			others++
			continue
		}
		empty = empty && s.Empty()
		sheets, damage = append(sheets, s), append(damage, s.Damage()...)
	}
	if empty {
		return errors.Join(append(damage, fmt.Errorf("no cell is finished in %s: experiment run NAME does the cells of an experiment", out))...)
	}
	if err := results.Write(to, sheets, others); err != nil {
		return err
	}
	return a.tell(to, sheets, others, damage)
}

// tell says on the terminal what was reported.
func (a app) tell(to string, sheets []*results.Sheet, others int, damage []error) error {
	var text strings.Builder
	for _, s := range sheets {
		fmt.Fprintln(&text, s.Summary())
	}
	if others > 0 {
		fmt.Fprintln(&text, results.NotBegun(others))
	}
	for _, err := range damage {
		fmt.Fprintf(&text, "left out: %v\n", err)
	}
	fmt.Fprintln(&text, to)
	_, err := io.WriteString(a.stdout, text.String())
	return err
}
