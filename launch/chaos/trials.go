package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"ebtrain/launch/exitcode"
)

// trial is something that happens to a job.
type trial struct {
	name string
	what string
	long bool // not one of --short
	do   func(w *workshop, r *result) (*job, error)
}

// result is what came of a trial.
type result struct {
	times []measured
	exits []int    // of the launchers that are looked at
	wrong []string // what was not as it must be
	left  []string
	notes string // to be shown below the table
}

// measured is a time, and the bar it must not pass; 0 if there is none.
type measured struct {
	name      string
	took, bar time.Duration
}

func (r *result) measure(name string, took, bar time.Duration) {
	r.times = append(r.times, measured{name, took, bar})
}

func (r *result) fault(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *result) String() string {
	var parts []string
	for _, m := range r.times {
		parts = append(parts, fmt.Sprintf("%s %v", m.name, m.took.Round(time.Millisecond)))
	}
	for _, what := range append(slices.Clone(r.wrong), r.left...) {
		parts = append(parts, "NOT: "+what)
	}
	return strings.Join(parts, ", ")
}

var trials = []trial{
	{"kill", "kill -9 of a rank", false, kill},
	{"launcher", "kill -9 of a launcher", false, killLauncher},
	{"node0", "kill -9 of node 0's launcher, of an elastic job", false, killNode0},
	{"stop", "SIGSTOP of a rank", false, stopRank},
	{"cut", "a host's cable is pulled", false, cut},
	{"shrink", "the same, of an elastic job", false, shrink},
	{"grow", "another host comes to an elastic job", true, grow},
	{"narrow", "all links have 2 Mbit/s for 5 s", true, narrow},
	{"disk", "the disk of --out is full", false, fullDisk},
	{"clock", "all processes stand still for 3 s, as when a virtual machine moves", true, standstill},
	{"twice", "a launcher too many", true, twice},
	{"late", "the last launcher comes 2 s late", true, late},
	{"replace", "a launcher is killed and started again, with --max-restarts 1", false, replace},
	{"reader", "nobody reads node 0's output, then kill -9 of a rank", false, reader},
	{"flood", "a stranger's connections and packets, for 3 s", false, strangers},
	{"busy", "64 busy loops for 5 s", true, busy},
	{"starts", "a start to the third step, at a load of 30", true, busyStart},
	{"crowd", "--crowd launchers make a job, then kill -9 of one", true, crowds},
}

// list is the trials, for --help.
func list() string {
	var b strings.Builder
	for _, t := range trials {
		fmt.Fprintf(&b, "  %-9s %s\n", t.name, t.what)
	}
	return b.String()
}

// tryAll makes those of all trials that are chosen, until chaos is interrupted: what became of the
// trial under way came of that, and is left out.
func (w *workshop) tryAll(all []trial, rep *report, stderr io.Writer) {
	for _, t := range all {
		if !w.chosen(t) {
			continue
		}
		for i := range w.times {
			begun := time.Now()
			r := w.try(t)
			if w.ctx.Err() != nil {
				rep.cut = fmt.Sprintf("Interrupted: time %d of %s, and what was to follow, are not in the table (%v).", i+1, t.name, context.Cause(w.ctx))
				return
			}
			rep.add(t, r)
			_, _ = fmt.Fprintf(stderr, "chaos: %-9s %5.1f s  %s\n", t.name, time.Since(begun).Seconds(), r)
		}
	}
}

// try makes a trial.
func (w *workshop) try(t trial) *result {
	r := &result{}
	j, err := t.do(w, r)
	if err != nil {
		r.fault("%v", err)
	}
	if j != nil {
		r.left = append(r.left, j.end()...)
		if len(r.wrong) > 0 && err == nil {
			r.fault("%s", j.said())
		}
	}
	return r
}

// verdicts are the sentences in which launchers and ranks name who is to blame.
var verdicts = regexp.MustCompile(`(?m)^(?:ddplaunch:|\[[0-9,-]+\] train:) ((?:rank|node) \d.*)$`)

// closing waits for the end of nodes, which must have code and blame whom pattern
// matches, and nobody else.
func (j *job) closing(r *result, nodes []*node, begun time.Time, code int, pattern string) (time.Duration, error) {
	took, err := j.ends(nodes, begun)
	if err != nil {
		return took, err
	}
	right := regexp.MustCompile(pattern)
	for _, n := range nodes {
		r.exits = append(r.exits, n.code)
		if n.code != code {
			r.fault("exit code %d of %s, want %d", n.code, n.host.Name, code)
		}
		said := verdicts.FindAllStringSubmatch(n.out.String(), -1)
		for _, s := range said {
			if !right.MatchString(s[1]) {
				r.fault("%s blames %q", n.host.Name, s[1])
			}
		}
		if len(said) == 0 {
			r.fault("%s blames nobody", n.host.Name)
		}
	}
	return took, nil
}

// goesOn wants a job that has had trouble to train, to have said nothing about it,
// and to stop when it is asked to.
func (j *job) goesOn(r *result) error {
	if err := j.awaitSteps(3); err != nil {
		return err
	}
	begun := time.Now()
	if err := j.stop(); err != nil {
		return err
	}
	if _, err := j.ends(j.nodes, begun); err != nil {
		return err
	}
	for _, n := range j.nodes {
		r.exits = append(r.exits, n.code)
		if n.code != exitcode.Requeue {
			r.fault("exit code %d of %s, want %d", n.code, n.host.Name, exitcode.Requeue)
		}
		for _, s := range verdicts.FindAllStringSubmatch(n.out.String(), -1) {
			r.fault("a false alarm of %s: %q", n.host.Name, s[1])
		}
	}
	return nil
}

// without is all nodes but one.
func (j *job) without(i int) []*node { return slices.Delete(slices.Clone(j.nodes), i, i+1) }
