// Command experiment runs the experiments of the papers and reports what came
// out beside what was to come out. See experiment --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/variable"
	"ebtrain/trainer/experiment/catalogue"
)

func main() {
	self, err := os.Executable()
	if err != nil {
		os.Exit(cliflag.Exit("experiment", err, os.Stderr))
	}
	os.Exit(start(app{catalogue: catalogue.All(), bin: filepath.Dir(self), self: self}, os.Args[1:]))
}

// start runs the program in this process; the result is its exit code.
func start(a app, args []string) int {
	a.environ, a.stdout, a.stderr = os.Environ(), os.Stdout, os.Stderr
	ctx, stop := withSignals(context.Background(), &a)
	err := a.run(ctx, args)
	stop()
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		fmt.Fprintf(os.Stderr, "experiment: %v\n", stopped)
		return exitcode.Requeue
	}
	return cliflag.Exit("experiment", err, os.Stderr)
}

// withSignals ends the context at the first SIGINT, SIGTERM or SIGHUP; the
// second one, after cliflag.OneRequest, kills the children, but not SIGTERM in a job of
// SLURM's, which sends several. Under nohup SIGHUP stays ignored.
func withSignals(parent context.Context, a *app) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	kill := make(chan struct{})
	a.kill = kill
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	done := make(chan struct{})
	_, batch := variable.Lookup(a.environ, "SLURM_JOB_ID")
	go func() {
		var asked time.Time
		for {
			select {
			case s := <-ch:
				if asked.IsZero() {
					asked = time.Now()
					cancel()
				} else if time.Since(asked) >= cliflag.OneRequest && !(batch && s == syscall.SIGTERM) {
					close(kill)
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(ch); close(done); cancel() }
}
