// Command bench measures how training scales on the ranks that there are, says where the
// time goes, and what the step would take on ranks that one does not have.
//
//	ddplaunch -nproc 8 bench --net conv32 --batch 256 --json scaling.json
//	bench --from scaling.json --predict 512,10000
//
// Steps are those of train, by the same loop (package loop); collectives are timed as
// collbench does (package timing); what has not been measured is played by package
// simulate. See bench --help.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/task"
	"ebtrain/trainer/world"
)

func main() {
	task.Lead("bench")
	ctx, end := cliflag.UntilSignal(context.Background(), unfinished)
	err := end(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	os.Exit(cliflag.Exit("bench", err, os.Stderr))
}

// unfinished is what there is of the work when a signal ends it.
const unfinished = "nothing was measured"

// run is the program, without the process around it: with --from it reads a report;
// started by no launcher with -nproc above 1, it has ddplaunch start itself; otherwise it
// is a rank.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	o, fs, err := parse(args, stdout)
	if err != nil {
		return err
	}
	worker, err := env.Parse(environ)
	if err != nil {
		return err
	}
	if o.from != "" {
		if !worker.Alone() {
			return cliflag.Usage("--from reads a report and measures nothing: it needs no launcher")
		}
		return again(ctx, o, stdout)
	}
	switch {
	case worker.Alone() && o.nproc > 1:
		if _, err := o.plan(o.nproc); err != nil {
			return err
		}
		return world.Launch(ctx, "bench", o.nproc, args, environ, stdout, stderr)
	case !worker.Alone() && o.nproc > 0 && o.nproc != worker.Size:
		return cliflag.Usage("-nproc %d, but this process is one of %d ranks: leave -nproc to the launcher", o.nproc, worker.Size)
	}
	src, err := o.openData()
	if err != nil {
		return err
	}
	w, err := world.Join(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if w.Size() > 1 {
		if err := world.Same(ctx, w.Rank(), cliflag.Values(fs), []string{"threads", "prefetch"}, src.Digest(), w.Exchange); err != nil {
			return err
		}
	}
	cases, err := o.plan(w.Size())
	if err != nil {
		return err
	}
	w.Announce("bench", stderr)
	ctx, cancel := w.Context(ctx)
	defer cancel()
	ctx, done := w.Unstopped(ctx, unfinished)
	defer done()
	if w.Rank() == 0 {
		if err := o.place(); err != nil {
			return w.Fail(err)
		}
	}
	out := world.Output(environ, stdout)
	if err := measure(ctx, o, w, src, cases, args, out); err != nil {
		return errors.Join(w.Fail(err), out.Close())
	}
	return out.Close()
}
