package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/plan"
)

// runOptions are the flags of experiment run.
type runOptions struct {
	seeds, rows  []string
	steps        int64
	out          string
	data, source string
	beside, sets []string
	jobs, nice   int
	again        bool
}

const runAbout = `experiment run does the cells of an experiment that are not finished.

  experiment run board --jobs 2
  experiment run frey --source frey_rawface.mat --seeds 1,2,3

Each train gets an equal share of the cores. Ctrl-C stops them cleanly, each
with a checkpoint; the same command goes on. A second Ctrl-C kills them. --steps
tries an experiment out; the report says so and judges nothing, and leaves such
cells out once others are whole.`

func (o *runOptions) define(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.seeds, "seeds", nil, "seeds, as in 1,2,3; default are the experiment's own")
	fs.StringSliceVar(&o.rows, "rows", nil, "rows, as in dsm,cd-1; default is all")
	fs.Int64Var(&o.steps, "steps", 0, "steps of every run, to try an experiment out; 0 is the experiment's")
	fs.StringVar(&o.data, "data", "", "the data set: a directory made by mkshards; default is in the folder of experiments")
	fs.StringVar(&o.source, "source", "", "what to make the data set of, if it is not there: --src of mkshards")
	fs.StringArrayVar(&o.sets, "set", nil, "where rows have data of their own: a data set, as in cifar10=shards/cifar10; default is in the folder of experiments; may be given again")
	fs.StringArrayVar(&o.beside, "beside", nil, "a data set that is compared with, as in svhn=shards/svhn; may be given again")
	fs.IntVar(&o.jobs, "jobs", 1, "cells at a time")
	fs.IntVar(&o.nice, "nice", 10, "how much lower the priority of the programs is; 0 is no lower")
	outFlag(fs, &o.out)
	fs.BoolVar(&o.again, "again", false, "do cells anew that were begun by another commit, with other settings or on other data, that were measured otherwise, or of which a file is damaged: they are removed")
}

func (o *runOptions) check() error {
	switch {
	case o.steps < 0:
		return cliflag.Usage("want --steps of at least 0, got %d", o.steps)
	case o.jobs < 1 || o.jobs > 1024:
		return cliflag.Usage("want --jobs from 1 to 1024, got %d", o.jobs)
	case o.nice < 0 || o.nice > 19:
		return cliflag.Usage("want --nice from 0 to 19, got %d", o.nice)
	case o.out == "":
		return cliflag.Usage("--out is empty: want the folder of the experiments")
	}
	return nil
}

// pick are the rows and seeds that were asked for.
func (o *runOptions) pick(e plan.Experiment) ([]plan.Row, []uint64, error) {
	rows, seeds := e.Rows, e.Seeds
	if len(o.rows) > 0 {
		rows = nil
		for _, name := range o.rows {
			r, ok := e.Row(name)
			if !ok {
				return nil, nil, cliflag.Usage("--rows %s: %s has no such row: want some of %s", name, e.Name, strings.Join(rowNames(e), ", "))
			}
			if !slices.ContainsFunc(rows, func(other plan.Row) bool { return other.Name == name }) {
				rows = append(rows, r)
			}
		}
	}
	if len(o.seeds) > 0 {
		seeds = nil
		for _, text := range o.seeds {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return nil, nil, cliflag.Usage("--seeds %q: want whole numbers of at least 0 with commas between them", text)
			}
			if !slices.Contains(seeds, n) {
				seeds = append(seeds, n)
			}
		}
	}
	return rows, seeds, nil
}

func rowNames(e plan.Experiment) []string {
	var names []string
	for _, r := range e.Rows {
		names = append(names, r.Name)
	}
	return names
}

// stoppedError means that a signal ended the work.
type stoppedError struct {
	done, all int
	args      []string
}

func (s *stoppedError) Error() string {
	return fmt.Sprintf("stopped, %d of %d cells finished; the same command goes on: experiment %s", s.done, s.all, strings.Join(s.args, " "))
}

// runExperiment is the command run.
func (a app) runExperiment(ctx context.Context, args []string) (err error) {
	var o runOptions
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.define(fs)
	if err := a.parse(fs, runAbout, args); err != nil {
		return err
	}
	e, err := a.one(fs)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.steps > 0 && e.Compute != nil {
		return cliflag.Usage("--steps %d: %s is computed and trains nothing, so there are no steps to do fewer of: leave --steps out", o.steps, e.Name)
	}
	rows, seeds, err := o.pick(e)
	if err != nil {
		return err
	}
	t, err := a.findTools(e)
	if err != nil {
		return err
	}
	threads := share(e, &o)
	w := &work{app: a, o: o, e: e, tools: t, threads: threads}
	all := cells(o.out, e, rows, seeds)
	if err := w.find(all); err != nil { // before anything is made or removed
		return err
	}
	lock, err := cell.Lock(o.out, e.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	tasks, done, err := w.prepare(ctx, all)
	if err != nil {
		return err
	}
	return w.all(ctx, tasks, done, append([]string{"run"}, args...))
}

// prepare makes the data of cells that are to be done, and removes what there is of those
// that are done anew.
func (w *work) prepare(ctx context.Context, all []cell.Cell) ([]task, int, error) {
	tasks, done, err := w.tasks(all)
	if err != nil {
		return nil, 0, err
	}
	if len(tasks) > 0 {
		if err := w.makeData(ctx); err != nil {
			return nil, 0, err
		}
		if tasks, done, err = w.tasks(all); err != nil { // data that were just made may be other ones
			return nil, 0, err
		}
	}
	for _, t := range tasks {
		if !t.anew {
			continue
		}
		if err := t.Remove(); err != nil {
			return nil, 0, err
		}
	}
	return tasks, done, nil
}

// share is the threads of each cell. Times are measured one at a time, with one
// thread.
func share(e plan.Experiment, o *runOptions) int {
	if e.Alone {
		o.jobs = 1
		return 1
	}
	return max(1, runtime.GOMAXPROCS(0)/o.jobs)
}
