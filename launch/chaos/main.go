// Command chaos does to real jobs what happens to them: it kills, stops, cuts off
// and starves their processes and hosts, and says how long the others took to
// notice, how they ended, whom they blamed, and what they left behind:
//
//	chaos --times 5 --report results.md
//
// A job is ddplaunch and train, on hosts made of namespaces (a network, mounts, a
// host name and a clock each) behind a switch of their own. Root is needed for
// that. Invariants: nothing outside of these namespaces is touched, but for the
// processor's time; every job that is started is ended, and looked for after that.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/netns"
	"ebtrain/launch/supervise"
)

func main() {
	if to := os.Getenv(floodVar); to != "" {
		flood(to)
		return
	}
	ctx, end := cliflag.UntilSignal(context.Background(), "the table has what was done")
	err := end(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	os.Exit(cliflag.Exit("chaos", err, os.Stderr))
}

// program is what --help shows of chaos besides the flags themselves.
var program = cliflag.Program{
	Name: "chaos",
	About: `chaos does to real jobs what happens to them, on hosts made of namespaces, and
says how long the others took to notice, how they ended, whom they blamed, and
what they left behind.

  chaos --times 5 --report results.md
  chaos --only cut,kill --times 20
  chaos --only crowd --crowd 16,64,128 --forecast
  chaos --short

It runs the ddplaunch and train that lie beside it, or are on PATH, and needs
root.
The exit code is 1 if a job ended otherwise than it must, blamed a wrong one or
left anything; times beyond the bars are marked, and no failure.

What is done:
` + list(),
	Groups: []cliflag.Group{
		{Title: "Which of it, and how", Flags: []string{"only", "times", "short", "hosts", "nproc", "crowd", "forecast"}},
		{Title: "Outputs", Flags: []string{"report", "keep"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// aheadBy is what the clock of the last host is ahead of the others'.
const aheadBy = 10 * 24 * time.Hour

type options struct {
	only   []string
	times  int
	short  bool
	hosts  int
	nproc  int
	report string
	keep   bool

	crowds   []int // launchers
	forecast bool
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("chaos", pflag.ContinueOnError)
	fs.StringSliceVar(&o.only, "only", nil, "do only these, for example cut,kill")
	fs.IntVar(&o.times, "times", 3, "how often each")
	fs.BoolVar(&o.short, "short", false, "the quick ones, once, on three hosts of one rank: within a minute")
	fs.IntVar(&o.hosts, "hosts", 4, "hosts of a job, from 3 to 9")
	fs.IntVar(&o.nproc, "nproc", 2, "ranks of each host")
	fs.IntSliceVar(&o.crowds, "crowd", []int{128}, "how many launchers a crowd has; several, as in 16,64,128, are crowds one after another")
	fs.BoolVar(&o.forecast, "forecast", false, "set what is forecast beside what crowds take, from two more of them, and what of many machines")
	fs.StringVar(&o.report, "report", "", "append the table to this file, as Markdown")
	fs.BoolVar(&o.keep, "keep", false, "keep the folders of the jobs, and say where they are")
	if err := program.Parse(fs, args, stdout); err != nil {
		return o, err
	}
	if err := o.ofNoUse(fs); err != nil {
		return o, err
	}
	if o.short {
		o.times, o.hosts, o.nproc = 1, 3, 1
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(trials, func(t trial) bool { return t.name == name }) {
			return o, cliflag.Usage("--only %s: there is no such trial", name)
		}
	}
	for _, n := range o.crowds {
		if n < 3 || n > 1024 {
			return o, cliflag.Usage("--crowd %d: want 3 to 1024 launchers", n)
		}
	}
	if o.hosts < 3 || o.hosts > 9 || o.nproc < 1 || 24%(o.hosts*o.nproc) != 0 || o.times < 1 {
		return o, cliflag.Usage("--hosts %d --nproc %d --times %d: want at least one time, and 3 to 9 hosts whose ranks share a batch of 24 equally", o.hosts, o.nproc, o.times)
	}
	return o, nil
}

// chosen says whether a trial is to be done.
func (o options) chosen(t trial) bool {
	if len(o.only) > 0 {
		return slices.Contains(o.only, t.name)
	}
	return !o.short || !t.long
}

// ofNoUse reports flags that were given to no effect.
func (o options) ofNoUse(fs *pflag.FlagSet) error {
	for _, name := range []string{"times", "hosts", "nproc"} {
		if o.short && fs.Changed(name) {
			return cliflag.Usage("--%s %s is of no use to --short, which has its own: leave one of them out", name, fs.Lookup(name).Value)
		}
	}
	crowded := slices.Contains(o.only, "crowd") || len(o.only) == 0 && !o.short
	for _, name := range []string{"crowd", "forecast"} {
		if !crowded && fs.Changed(name) {
			return cliflag.Usage("--%s is for the trial crowd, which is not done: leave it out, or say --only crowd", name)
		}
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := checkReport(o.report); err != nil {
		return err
	}
	w := &workshop{options: o, ctx: ctx, self: self}
	for name, path := range map[string]*string{"ddplaunch": &w.launcher, "train": &w.train} {
		if *path, err = supervise.LookProgram(name, filepath.Dir(self), os.Getenv("PATH")); err != nil {
			return cliflag.AsUsage(err)
		}
	}
	if w.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return err
	}
	if o.keep {
		_, _ = fmt.Fprintf(stderr, "chaos: the jobs are in %s\n", w.dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	}
	if w.net, err = netns.New(o.hosts, aheadBy); err != nil {
		return err
	}
	rep := newReport(o)
	w.tryAll(trials, rep, stderr)
	if err := w.net.Close(); err != nil {
		rep.stray = err.Error()
	}
	text := rep.String()
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	if o.report != "" {
		if err := appendTo(o.report, text); err != nil {
			return err
		}
	}
	if bad := rep.bad(); len(bad) > 0 {
		return fmt.Errorf("not as it must be: %s", strings.Join(bad, ", "))
	}
	return context.Cause(ctx)
}

// checkReport reports, before the trials, a file that nothing can be appended to.
func checkReport(path string) error {
	if path == "" {
		return nil
	}
	if err := appendTo(path, ""); err != nil {
		return fmt.Errorf("--report: %w: give another file", err)
	}
	return nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
