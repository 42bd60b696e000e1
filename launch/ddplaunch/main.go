// Command ddplaunch starts one process per rank on this node, tells each its
// rank, carries their output, and ends them all when one fails:
//
//	ddplaunch -nproc 8 train --algo bidvl --data shards/celeba128 --out runs/a
//
// Everything after the program's name is the program's. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/outlet"
	"ebtrain/launch/supervise"
)

func main() {
	supervise.Guard()
	// A reader that goes away (ddplaunch | head) must not kill the launcher:
	// writing then fails with an error, and the ranks are asked to stop.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	// Nor may one that stops reading hold it up.
	stdout, stderr := outlet.Pair(os.Stdout, os.Stderr)
	code := exitCode(run(context.Background(), os.Args[1:], stdout, stderr), stderr)
	_ = errors.Join(stdout.Flush(), stderr.Flush()) // there is nowhere left to say it
	os.Exit(code)
}

// exit is the code of a job that has ended and has already said why.
type exit int

func (e exit) Error() string { return fmt.Sprintf("the job ended with code %d", int(e)) }

// exitCode prints err, unless it has been said, and returns the code of
// design.md: 0 done, 2 usage, the job's own, else 1.
func exitCode(err error, stderr io.Writer) int {
	if e, ok := errors.AsType[exit](err); ok && !joined(err) {
		return int(e)
	}
	code := cliflag.Exit("ddplaunch", err, stderr)
	if s, ok := errors.AsType[*stopped](err); ok {
		return exitcode.Signal + int(s.number())
	}
	return code
}

// joined says that err is several errors.
func joined(err error) bool {
	_, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // of err itself, not of what it wraps
	return ok
}

// run does what args say and returns nil, an exit, or what went wrong.
func run(ctx context.Context, args []string, stdout, stderr *outlet.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	for _, s := range o.signals {
		if s != unix.SIGHUP || !signal.Ignored(s) { // nohup
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	flight := make(chan os.Signal, 1)
	if !slices.Contains(o.signals, os.Signal(unix.SIGUSR2)) {
		signal.Notify(flight, unix.SIGUSR2)
		defer signal.Stop(flight)
	}
	cfg, err := interruptible(ctx, signals, func(ctx context.Context) (supervise.Config, error) {
		return configure(ctx, o, os.Environ(), stdout, stderr)
	})
	if err != nil {
		return err
	}
	cfg.Signals, cfg.Flight = signals, flight
	if cfg.TTY {
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, unix.SIGWINCH)
		defer signal.Stop(resized)
		cfg.Resized = resized
	}
	code, err := supervise.Run(ctx, cfg)
	if err != nil || code == 0 {
		return err
	}
	return exit(code)
}

// interruptible does f with a context that the first of signals ends. The job has
// not begun then.
func interruptible(ctx context.Context, signals <-chan os.Signal, f func(context.Context) (supervise.Config, error)) (supervise.Config, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case s := <-signals:
			cancel(&stopped{s})
		case <-done:
		}
	})
	cfg, err := f(ctx)
	close(done)
	watching.Wait()
	if s, ok := errors.AsType[*stopped](context.Cause(ctx)); ok {
		if err == nil && cfg.Transport != nil {
			return cfg, errors.Join(s, cfg.Transport.Close())
		}
		return cfg, s
	}
	return cfg, err
}

// stopped is that a signal came before the ranks were started.
type stopped struct{ os.Signal }

func (s *stopped) Error() string {
	return fmt.Sprintf("stopped by %s before the ranks were started", unix.SignalName(s.number()))
}

func (s *stopped) number() unix.Signal {
	n, _ := s.Signal.(unix.Signal) // there are no others on Linux
	return n
}
