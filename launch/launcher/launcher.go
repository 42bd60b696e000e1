// Package launcher is a launcher's way from what its user or its scheduler says to
// the job that package supervise runs: this node's place, the secret, where node 0
// is and when the job's time ends.
//
// It is what ddplaunch and a program that srun, mpirun or mpiexec start without it
// (package task) have in common. Run keeps no state beyond its call; it takes over the process's
// signals for that long, and must be called once at a time.
package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/binding"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/deadline"
	"ebtrain/launch/env"
	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/supervise"
)

// Options say what a launcher is to do.
type Options struct {
	Name    string // of this program, in front of what it says
	Program string // that each rank runs
	Args    []string

	Nproc    int // ranks of this launcher
	Nodes    int // launchers, at most
	Least    int // launchers that suffice; Nodes if their number is fixed
	NodeRank int // this launcher's number, 0 coordinates; -1 for any
	RunID    string

	// Endpoint is where node 0 is, see member.Config.
	Endpoint string
	Network  string           // interface or prefix for the ranks' data; "" for the way to node 0
	Ports    rendezvous.Ports // that may be listened on
	KeyFile  string           // holds the secret; "" for EBTRAIN_KEY
	JoinWait time.Duration

	// Step is the one that all launchers are tasks of, whose store of keys and values
	// tells address and secret, if it has one; zero if a user has started each.
	Step  env.Step
	Apart bool     // it is none of a step's, though it may be in one: the user has told its place
	Host  string   // what who started the step calls this node; "" for its own name
	Hosts []string // of all launchers, if known; only for messages
	// Local and Locals are the place of this launcher's first rank among all of
	// this host, and their number; 0 if all are this launcher's.
	Local, Locals int

	Binding     binding.Mode // of ranks to processors
	MaxRestarts int
	Grace       time.Duration
	StuckAfter  time.Duration // 0 for never
	StopBefore  time.Duration // how long before the end of the job's time to stop; 0 for never
	Output      supervise.Output
	Gather      bool        // node 0 shows the lines of all ranks
	Signals     []os.Signal // that ask the ranks to stop
	Verbose     bool
}

// Defaults are the options of a launcher that has been told nothing.
func Defaults(name string) Options {
	return Options{
		Name: name, Nproc: 1, Nodes: 1, Least: 1, JoinWait: 600 * time.Second,
		Grace: 10 * time.Second, StuckAfter: 30 * time.Second, StopBefore: time.Minute,
		Signals: []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1},
	}
}

// Exit is the code of a job that has ended and has already said why.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("the job ended with code %d", int(e)) }

// Run does what o says, in the environment environ, and returns nil if all ranks
// ended well, an Exit, or what went wrong.
func Run(ctx context.Context, o Options, environ []string, stdout, stderr *outlet.Writer) error {
	err := run(ctx, o, environ, stdout, stderr)
	if err != nil {
		time.Sleep(lag(o.Step))
	}
	return err
}

func run(ctx context.Context, o Options, environ []string, stdout, stderr *outlet.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan os.Signal, 8)
	for _, s := range o.Signals {
		if s != unix.SIGHUP || !signal.Ignored(s) { // nohup
			signal.Notify(sent, s)
		}
	}
	defer signal.Stop(sent)
	signals := requests(ctx, sent)
	flight := make(chan os.Signal, 1)
	if !slices.Contains(o.Signals, os.Signal(unix.SIGUSR2)) {
		signal.Notify(flight, unix.SIGUSR2)
		defer signal.Stop(flight)
	}
	cfg, err := interruptible(ctx, signals, func(ctx context.Context) (supervise.Config, error) {
		return configure(ctx, o, environ, stdout, stderr)
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
	if o.NodeRank == 0 && o.StopBefore > 0 {
		cfg.Ending = watchEnd(ctx, environ, o.StopBefore)
	}
	code, err := supervise.Run(ctx, cfg)
	if err != nil && code > 1 { // what failed after the job, as a full disk, is no more than its end
		_ = cliflag.Show(o.Name, err, stderr)
		return Exit(code)
	}
	if err != nil || code == 0 {
		return err
	}
	return Exit(code)
}

// watchEnd tells, once, that the job's time is about to end.
func watchEnd(ctx context.Context, environ []string, before time.Duration) <-chan supervise.Ending {
	soon := make(chan supervise.Ending, 1)
	go deadline.Watch(ctx, environ, before, func(end time.Time, how string) {
		soon <- supervise.Ending{At: end, How: how}
	})
	return soon
}

// stopWait is how long a launcher that is stopped waits for what it does not to have begun.
const stopWait = time.Second

// interruptible does f with a context that the first of signals ends. The job has
// not begun then. Where f stands still in what no context ends, as a file system that does not
// answer, it is left behind.
func interruptible(ctx context.Context, signals <-chan os.Signal, f func(context.Context) (supervise.Config, error)) (supervise.Config, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		cfg supervise.Config
		err error
	}
	done := make(chan result, 1)
	go func() {
		cfg, err := f(ctx)
		done <- result{cfg, err}
	}()
	var stopped *cliflag.Stopped
	select {
	case r := <-done:
		return r.cfg, r.err
	case s := <-signals:
		n, _ := s.(unix.Signal) // there are no others on Linux
		stopped = &cliflag.Stopped{Signal: n, Rest: "the ranks were not started"}
		cancel(stopped)
	}
	select {
	case r := <-done:
		if r.err == nil && r.cfg.Transport != nil {
			return r.cfg, errors.Join(stopped, r.cfg.Transport.Close())
		}
		return r.cfg, stopped
	case <-time.After(stopWait):
		return supervise.Config{}, stopped
	}
}
