package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ebtrain/data/atomicfile"
	"ebtrain/launch/exitcode"
	"ebtrain/trainer/device"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/child"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// bench is one cell under way. It belongs to one goroutine, but for what.
type bench struct {
	w       *work
	t       task
	begun   cell.Begun
	console *os.File
	command [][]string // of each program, as it was first started
	doing   atomic.Value
	answers map[string]map[string]any // of evaluate, by its flags
}

// what is what a cell does, in words.
func (b *bench) what() string {
	text := fmt.Sprintf("%s seed %d", b.t.Row, b.t.Seed)
	if program, ok := b.doing.Load().(string); ok && program != "train" {
		text += " (" + program + ")"
	}
	return text
}

// brokenError is a program that came to nothing.
type brokenError struct{ cell.Broken }

func (b *brokenError) Error() string { return b.String() }

// errStopped means that a program was interrupted.
var errStopped = errors.New("interrupted")

// one does a cell, from where it was left.
func (w *work) one(ctx context.Context, t task) (outcome, error) {
	o := outcome{task: t}
	if ctx.Err() != nil {
		o.stop = true
		return o, nil
	}
	b, err := w.open(t)
	if err != nil {
		return o, err
	}
	end := w.show.begin(t, func() (int64, string) { return stepOf(t.Cell), b.what() })
	defer func() { end(t.steps) }()
	m, err := b.measured(ctx)
	err = errors.Join(err, b.console.Close())
	if broken, ok := errors.AsType[*brokenError](err); ok {
		m, err = cell.Measured{Broken: &broken.Broken}, nil
	}
	if errors.Is(err, errStopped) {
		o.stop, o.text = true, fmt.Sprintf("interrupted after %d of %d steps", stepOf(t.Cell), t.steps)
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if err := w.sameBuild(); err != nil {
		return o, err
	}
	b.sign(&m)
	o.text, o.broken = describe(w.e, t, m)
	return o, t.Finish(m)
}

// open begins a cell, or takes it up again.
func (w *work) open(t task) (*bench, error) {
	b := &bench{w: w, t: t, answers: map[string]map[string]any{}}
	if t.status.Begun != nil {
		b.begun = *t.status.Begun
		b.begun.Questions = w.e.Questions(t.row)
		if err := t.Reopen(); err != nil {
			return nil, err
		}
	} else {
		b.begun = cell.Begun{Commit: w.tools.commit, Settings: t.settings, Data: w.dataOf(t.row), Questions: w.e.Questions(t.row), Steps: t.steps, Started: time.Now().UTC().Round(time.Second),
			TriedOut: t.steps != w.e.Steps(t.row)}
		if err := t.Begin(b.begun); err != nil {
			return nil, err
		}
	}
	var err error
	b.console, err = os.OpenFile(t.Console(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	return b, err
}

// sign says of what came out where it is from and what it cost.
func (b *bench) sign(m *cell.Measured) {
	m.Commit, m.Settings, m.Data, m.Steps, m.TriedOut = b.begun.Commit, b.begun.Settings, b.begun.Data, b.begun.Steps, b.begun.TriedOut
	m.Machine, m.Command, m.Ended = machine(device.GPUs()), b.command, time.Now().UTC().Round(time.Second)
	m.CPU, m.Train = b.begun.CPU(""), b.begun.CPU("train")
	for _, program := range b.begun.Lost() {
		m.Notes = append(m.Notes, program+" was killed together with experiment: what it cost until then is not known, and no part of any processor time")
	}
}

// measured does what is left to do.
func (b *bench) measured(ctx context.Context) (cell.Measured, error) {
	if b.w.e.Compute != nil {
		return b.compute(ctx)
	}
	if b.w.e.Ranks != nil {
		return b.compare(ctx)
	}
	if err := b.train(ctx); err != nil {
		return cell.Measured{}, err
	}
	return b.take(ctx)
}

// train begins the run, or goes on with it.
func (b *bench) train(ctx context.Context) error {
	fresh := b.fresh()
	b.command = append(b.command, append([]string{"train"}, fresh...))
	args := fresh
	if _, err := os.Stat(rundir.Layout(b.t.Dir()).ConfigFile()); err == nil {
		args = append([]string{"--resume"}, b.here()...)
	}
	err := b.program(ctx, "train", b.w.tools.train, args, nil)
	return orDiverged(err, func() bool { return runDiverged(b.t.Dir()) })
}

// fresh are the flags of train that begin the run.
func (b *bench) fresh() []string {
	often := map[string]int64{"log-every": b.logEvery(), "ckpt-every": max(1, b.t.steps/10), "ckpt-keep": 2, "sample-every": 0, "samples": 0}
	for _, c := range b.w.e.Curves {
		if c.Every > 0 {
			often["ckpt-every"], often["ckpt-keep"] = c.Every, 0
		}
	}
	if sel := b.w.e.Select; sel != nil {
		often["ckpt-every"], often["ckpt-keep"] = max(1, b.t.steps/sel.Of), 0
	}
	flags := map[string]string{}
	for name, n := range often {
		given := func(s string) bool { return strings.HasPrefix(s, "--"+name+"=") }
		if !slices.ContainsFunc(b.t.settings, given) {
			flags[name] = fmt.Sprint(n)
		}
	}
	return slices.Concat(b.t.settings, plan.Flags(flags), b.here())
}

// logEvery is of which steps there are lines of metrics: of one in so many.
func (b *bench) logEvery() int64 {
	for _, s := range b.t.settings {
		if text, ok := strings.CutPrefix(s, "--log-every="); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
				return n
			}
		}
	}
	return max(1, b.t.steps/1000)
}

// here are the flags that say where.
func (b *bench) here() []string {
	return append(b.onData(), "--out="+b.t.Dir(), fmt.Sprintf("--threads=%d", b.w.threads))
}

// onData is --data, if there are data.
func (b *bench) onData() []string {
	data := b.w.trainedOn(b.t.row)
	if data == "" {
		return nil
	}
	return []string{"--data=" + data}
}

// program runs one of the programs and keeps what it cost. stdout nil is the
// console.
func (b *bench) program(ctx context.Context, name, path string, args []string, stdout io.Writer) error {
	return b.launch(ctx, 0, name, path, args, stdout)
}

// launch is program, where path is the launcher of so many ranks of it.
func (b *bench) launch(ctx context.Context, ranks int, name, path string, args []string, stdout io.Writer) error {
	if ctx.Err() != nil {
		return errStopped
	}
	if err := b.w.sameBuild(); err != nil {
		return err
	}
	b.doing.Store(name)
	from, err := b.console.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	ended, err := b.piece(cell.Piece{Program: name, Threads: b.w.threads, Ranks: ranks}, func() (child.Ended, error) {
		ended, err := child.Run(ctx, child.Command{Path: path, Args: args, Env: alone(b.w.app.environ), Nice: b.w.o.nice, Stdout: stdout, Log: b.console, Kill: b.w.app.kill})
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return ended, err
	})
	if err != nil {
		return err
	}
	if ended.Code == exitcode.Done {
		return nil
	}
	if ended.Code == exitcode.Requeue || ctx.Err() != nil {
		return errStopped
	}
	line, err := child.LastLine(b.t.Console(), from)
	if err != nil {
		return err
	}
	line = strings.TrimPrefix(line, name+": ")
	return &brokenError{cell.Broken{Program: name, Ended: ended.String(), Line: line}}
}

// piece notes a process before it is started, and how it ended. If this process is killed
// meanwhile, the note stays without an end: nobody knows what that piece cost.
func (b *bench) piece(p cell.Piece, run func() (child.Ended, error)) (child.Ended, error) {
	n := len(b.begun.Pieces)
	p.Started = time.Now().UTC().Round(time.Second)
	b.begun.Pieces = append(b.begun.Pieces, p)
	if err := b.t.Begin(b.begun); err != nil {
		return child.Ended{}, err
	}
	ended, err := run()
	switch {
	case err == nil:
		p.CPU, p.Wall, p.Ended = ended.CPU.Seconds(), ended.Wall.Seconds(), ended.String()
		b.begun.Pieces[n] = p
	case ended.Started.IsZero(): // it was not
		b.begun.Pieces = b.begun.Pieces[:n]
	}
	return ended, errors.Join(err, b.t.Begin(b.begun))
}

// orDiverged marks the error of a program that came to nothing, if it did because losses or
// measured numbers are not finite.
func orDiverged(err error, diverged func() bool) error {
	if broken, ok := errors.AsType[*brokenError](err); ok {
		broken.Diverged = diverged()
	}
	return err
}

// runDiverged says whether the last start of a run ended so. A run of which config.json
// cannot be read did not come as far.
func runDiverged(dir string) bool {
	c, err := rundir.ReadConfig(dir)
	return err == nil && c.Diverged != ""
}

// describe is a cell in a line.
func describe(e plan.Experiment, t task, m cell.Measured) (text string, broken bool) {
	if m.Broken != nil && m.Broken.Diverged {
		return "diverged: " + m.Broken.Line, false
	}
	if m.Broken != nil {
		return "came to nothing: " + m.Broken.String(), true
	}
	var words []string
	for _, c := range e.Measured(t.row) {
		if v, ok := m.Values[c]; ok {
			words = append(words, fmt.Sprintf("%s %.5g", c, v))
		}
	}
	return fmt.Sprintf("%s (%.3g s of CPU)", strings.Join(words, ", "), m.CPU), false
}

// stepOf is how many steps of a cell are done, by its last line of metrics or its
// newest checkpoint; 0 if that cannot be seen yet.
func stepOf(c cell.Cell) int64 {
	l := rundir.Layout(c.Dir())
	done, err := ckpt.NewestStep(l.Ckpt())
	if err != nil {
		done = 0
	}
	if r, ok := lastRecord(l.MetricsFile()); ok {
		done = max(done, r.Step+1)
	}
	return done
}

// lastRecord is the last whole line of a metrics.jsonl that may be growing.
func lastRecord(file string) (r rundir.Record, ok bool) {
	f, err := atomicfile.Open(file)
	if err != nil {
		return r, false
	}
	defer func() { _ = f.Close() }() // it was only read
	const tail = 8 << 10
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return r, false
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, size-tail), tail))
	if err != nil {
		return r, false
	}
	end := bytes.LastIndexByte(b, '\n')
	if end < 0 {
		return r, false
	}
	line := b[bytes.LastIndexByte(b[:end], '\n')+1 : end]
	return r, json.Unmarshal(line, &r) == nil
}
