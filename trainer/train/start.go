package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/world"
)

// start is what this rank is to do: first what its command line and its host say, then
// what all ranks agree on.
type start struct {
	typed  []string       // the command line
	args   []string       // with the --resume of a later epoch
	stdout io.Writer      // for --help
	saved  *rundir.Config // the run in --out that goes on; nil if there is none here, or a new one begins
	asks   bool           // it goes on with a run, and other hosts may know more of that
	later  bool           // the job has been formed again: its run is that of rank 0

	o   *options
	fs  *pflag.FlagSet
	src data.Source
}

// newStart reads the command line. Mistakes in it are the error, before the ranks have met;
// but of a run that goes on on several ranks other hosts may have other flags, or all of
// it, so agree reads it again, and opens the data only then.
func newStart(w env.Worker, typed, args []string, stdout io.Writer) (*start, error) {
	first := peek(args)
	s := &start{typed: typed, args: args, stdout: stdout, asks: first.resumes() && w.Size > 1, later: w.Restart > 0}
	var err error
	if first.resumes() {
		if s.saved, err = savedRun(first.out); err != nil {
			return nil, err
		}
	}
	if err = s.read(s.saved); s.asks && !errors.Is(err, cliflag.ErrHelp) {
		return s, nil
	}
	if err == nil && s.lacks() {
		err = noRun(s.o.out)
	}
	if err == nil {
		err = s.open()
	}
	return s, err
}

// read reads the command line, of a new run or, if saved is one, of that.
func (s *start) read(saved *rundir.Config) (err error) {
	s.o, s.fs, err = parse(saved, s.args, s.stdout)
	return err
}

// open opens the data set, and settles the flags that follow from it.
func (s *start) open() (err error) {
	if s.src, err = openData(s.o); err != nil {
		return err
	}
	if err = s.o.openFrom(s.fs, s.src.Schema()); err != nil {
		return err
	}
	return s.o.spareSamples(s.fs) // before flags are compared: config.json has what it leaves
}

// lacks says whether the command line, as it was typed, only goes on with a run, and there
// is none.
func (s *start) lacks() bool {
	return peek(s.typed).resume && s.o.was == nil && !s.o.verify && !begins(s.fs)
}

// noRun is that there is none, on no host.
func noRun(out string) error {
	return cliflag.Usage("--out %s holds no run to resume: give the --out of one, or begin one here with --data and what else it needs", out)
}

// agree has all ranks do the same: go on with the one run, by its newest flags, or begin
// the same. All ranks call it. Of an error that all find alike each says so itself; what
// one finds alone is said by fail, on all, or, if it is of its host, by failHere.
func (s *start) agree(ctx context.Context, rank int, swap world.Exchange, fail, failHere func(error) error) error {
	own, err := standingOf(s.saved)
	if err != nil {
		return fail(err)
	}
	all, err := standings(ctx, own, swap)
	if err != nil {
		return fail(err)
	}
	if s.later && own.foreign(all[0]) {
		return failHere(anothersRun(peek(s.typed).out))
	}
	saved, err := theRun(ctx, rank, s.saved, all, swap)
	if err != nil {
		return fail(err)
	}
	if s.asks {
		if err := s.settle(saved); err != nil {
			if _, usage := errors.AsType[*cliflag.UsageError](err); usage || s.saved != nil || saved == nil {
				return err
			}
			return failHere(err) // which is new to the run
		}
	}
	return world.Same(ctx, rank, cliflag.Values(s.fs), ofEachHost, s.o.settings.DataDigest, swap)
}

// settle reads the command line of a run that goes on, which is saved, nil if no host has
// one, and opens the data.
func (s *start) settle(saved *rundir.Config) error {
	if err := s.read(saved); err != nil {
		return err
	}
	if s.lacks() {
		return noRun(s.o.out)
	}
	if err := s.open(); err != nil {
		return err
	}
	if s.saved == nil {
		s.o.was = nil // it was not begun here
	}
	return nil
}

// failHere tells all ranks of err, which this one found of its host before it had joined them,
// and returns the reason for which the job ends here.
func failHere(ctx context.Context, environ []string, err error) error {
	w, failed := world.Join(ctx, environ)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(w.FailHere(err), w.Close())
}
