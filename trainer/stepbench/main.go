// Command stepbench times the full training step of a network on one or more
// ranks, beside what the machine can do, and checks the results while it does.
//
//	stepbench --net conv32 --batch 64 --threads 2
//	stepbench -nproc 2 --net conv32 --batch 64 --threads 1 --json
//
// README.md says how to read what it prints, and what misleads.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/progressbar"
	"ebtrain/launch/task"
	"ebtrain/trainer/world"
)

func main() {
	task.Lead("stepbench")
	ctx, end := cliflag.UntilSignal(context.Background(), unfinished)
	err := end(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	os.Exit(cliflag.Exit("stepbench", err, os.Stderr))
}

// unfinished is what there is of the work when a signal ends it.
const unfinished = "nothing was measured"

// run is the program, without the process around it. Started by no launcher
// with -nproc above 1, it has ddplaunch start itself; otherwise it is a rank.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	worker, err := env.Parse(environ)
	if err != nil {
		return err
	}
	switch {
	case worker.Alone() && o.nproc > 1:
		if err := o.divides(o.nproc); err != nil {
			return err
		}
		return world.Launch(ctx, "stepbench", o.nproc, args, environ, stdout, stderr)
	case !worker.Alone() && o.nproc > 0 && o.nproc != worker.Size:
		return cliflag.Usage("-nproc %d, but this process is one of %d ranks: leave -nproc to the launcher", o.nproc, worker.Size)
	}
	w, err := world.Join(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := o.divides(w.Size()); err != nil {
		return err
	}
	w.Announce("stepbench", stderr)
	ctx, cancel := w.Context(ctx)
	defer cancel()
	ctx, done := w.Unstopped(ctx, unfinished)
	defer done()
	out := world.Output(environ, stdout)
	if w.Rank() != 0 {
		stderr = io.Discard // one tells how it goes
	}
	if err := rank(ctx, o, w, out, progressbar.NewPhases(stderr)); err != nil {
		return errors.Join(w.Fail(err), out.Close())
	}
	return out.Close()
}
