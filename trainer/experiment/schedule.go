package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize/english"

	"ebtrain/trainer/device"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

// work is the cells of an experiment that are to be done. Its fields do not
// change once cells are under way.
type work struct {
	app     app
	o       runOptions
	e       plan.Experiment
	tools   tools
	data    string
	sets    map[string]string    // --data by the name of a data set, where rows have their own
	digests map[string]cell.Data // of these, by --data; of data that are yet to be made there are none
	others  cell.Data            // digests of the data sets beside
	beside  []string             // flags of evaluate: other data sets
	threads int                  // of each cell
	show    *progress
}

// task is a cell that is to be done.
type task struct {
	cell.Cell
	row      plan.Row
	settings []string
	steps    int64
	status   cell.Status
	anew     bool // what is there of it is another program's, and is to be removed
}

// tasks are the cells that are not finished, and how many are. Cells of other
// programs, settings, data, questions or, where times are measured, machines, and damaged ones, are
// an error, or are to be done anew with --again.
func (w *work) tasks(all []cell.Cell) (open []task, done int, err error) {
	var foreign []string
	for _, c := range all {
		row, _ := w.e.Row(c.Row) // it is one of its rows
		t := task{Cell: c, row: row, settings: w.e.Settings(row, c.Seed, w.o.steps), steps: w.e.Steps(row)}
		if w.o.steps > 0 {
			t.steps = w.o.steps
		}
		if t.status, err = c.Load(); err == nil && w.o.again {
			err = damagedRun(t)
		}
		if w.o.again && damaged(err) {
			t.status, t.anew, err = cell.Status{}, true, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if why := w.foreign(t); why != "" {
			if !w.o.again {
				foreign = append(foreign, fmt.Sprintf("%s seed %d %s", c.Row, c.Seed, why))
				continue
			}
			t.status, t.anew = cell.Status{}, true
		}
		if t.status.Finished() {
			done++
			continue
		}
		open = append(open, t)
	}
	if len(foreign) > 0 {
		return nil, 0, fmt.Errorf("%s of %s in %s %s begun by other programs, with other settings, on other data, on another machine where times are measured, or to be measured otherwise and %s not mixed with those of commit %s (%s): give --again to do them anew, or another --out",
			english.Plural(len(foreign), "cell", ""), w.e.Name, w.o.out, english.PluralWord(len(foreign), "was", "were"),
			english.PluralWord(len(foreign), "is", "are"), w.tools.commit, few(foreign))
	}
	return open, done, nil
}

// damaged says whether an error is a damaged file of a cell, or of its run.
func damaged(err error) bool {
	_, file := errors.AsType[*cell.DamagedError](err)
	_, run := errors.AsType[*rundir.DamagedError](err)
	return file || run
}

// damagedRun is the error of a cell whose training was begun, and can never go on, since its
// config.json is damaged; nil of all others.
func damagedRun(t task) error {
	if t.status.Begun == nil || t.status.Finished() {
		return nil
	}
	if _, err := rundir.ReadConfig(t.Dir()); damaged(err) {
		return err
	}
	return nil
}

// foreign says how a cell was begun otherwise than it would be now; empty if it
// was not.
func (w *work) foreign(t task) string {
	b := t.status.Begun
	switch {
	case b == nil:
		return ""
	case b.Commit != w.tools.commit:
		return "by commit " + b.Commit
	case !slices.Equal(b.Settings, t.settings):
		return "with " + difference(b.Settings, t.settings)
	}
	if now := w.e.Questions(t.row); b.Questions != nil && t.status.Finished() && !slices.Equal(b.Questions, now) {
		return "asked for " + difference(b.Questions, now)
	}
	if was := b.Data.Other(w.dataOf(t.row)); was != "" {
		return "on other data: " + was
	}
	if m := t.status.Measured; w.e.Alone && t.status.Finished() && m.Machine != machine(device.GPUs()) {
		return "on another machine: " + m.Machine
	}
	return ""
}

// difference are the settings that now does not have.
func difference(was, now []string) string {
	var only []string
	for _, s := range was {
		if !slices.Contains(now, s) {
			only = append(only, s)
		}
	}
	if len(only) == 0 {
		return "less than now"
	}
	return strings.Join(only, " ")
}

// few are the first of many.
func few(words []string) string {
	const shown = 3
	if len(words) <= shown {
		return strings.Join(words, "; ")
	}
	return strings.Join(words[:shown], "; ") + fmt.Sprintf("; and %d more", len(words)-shown)
}

// rowsOf are the rows of tasks.
func rowsOf(tasks []task) []plan.Row {
	rows := make([]plan.Row, len(tasks))
	for i, t := range tasks {
		rows[i] = t.row
	}
	return rows
}

// outcome is what became of a cell.
type outcome struct {
	task   task
	text   string // in a line
	broken bool
	stop   bool // was interrupted
}

// all does the cells, several at a time, done of them before. What breaks is
// named and the others go on; an error of our own ends the work.
func (w *work) all(ctx context.Context, open []task, done int, args []string) error {
	total := done + len(open)
	if w.show = newProgress(w.app.stdout, open); len(open) > 0 {
		w.show.line("%s: %s to do, %d finished before; %d at a time, %s each, into %s", w.e.Name, english.Plural(len(open), "cell", ""), done, w.o.jobs, english.Plural(w.threads, "thread", ""), w.o.out)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	queue, results := make(chan task), make(chan result)
	go feed(inner, queue, open)
	var wg sync.WaitGroup
	for range min(w.o.jobs, len(open)) {
		wg.Go(func() {
			for t := range queue {
				o, err := w.one(inner, t)
				if err != nil {
					cancel() // before it is told of: no further cell is begun
				}
				results <- result{o, err}
			}
		})
	}
	go func() { wg.Wait(); close(results) }()
	var broken []string
	var errs []error
	for r := range results {
		switch {
		case r.err != nil:
			errs = append(errs, fmt.Errorf("%v: %w", r.o.task.Cell, r.err))
		case r.o.stop:
		case r.o.broken:
			broken = append(broken, fmt.Sprintf("%s seed %d", r.o.task.Row, r.o.task.Seed))
		default:
			done++
		}
		if r.o.text != "" {
			w.show.line("%s seed %d: %s", r.o.task.Row, r.o.task.Seed, r.o.text)
		}
	}
	w.show.close()
	return w.verdict(ctx, errors.Join(errs...), broken, done, total, args)
}

type result struct {
	o   outcome
	err error
}

// feed hands out the tasks until the context ends.
func feed(ctx context.Context, queue chan<- task, open []task) {
	defer close(queue)
	for _, t := range open {
		select {
		case queue <- t:
		case <-ctx.Done():
			return
		}
	}
}

// verdict is how run ends.
func (w *work) verdict(ctx context.Context, err error, broken []string, done, total int, args []string) error {
	if err != nil {
		return err
	}
	if ctx.Err() == nil && len(broken) > 0 {
		return fmt.Errorf("%d of %d cells of %s came to nothing (%s): the lines above say why; the same command tries them again", len(broken), total, w.e.Name, few(broken))
	}
	if done < total {
		return &stoppedError{done, total, args}
	}
	finished := fmt.Sprintf("all %d cells of %s are finished", total, w.e.Name)
	if total == 1 {
		finished = fmt.Sprintf("the 1 cell of %s is finished", w.e.Name)
	}
	_, err = fmt.Fprintf(w.app.stdout, "%s; experiment report %s --out %s says what came out\n", finished, w.e.Name, w.o.out)
	return err
}
