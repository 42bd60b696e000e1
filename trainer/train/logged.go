package main

import (
	"fmt"
	"strconv"

	"ebtrain/trainer/chosen"
	"ebtrain/trainer/run/rundir"
)

// logged is of which steps a run has written a line: from a step on, every so many, or 0 where
// nobody knows.
type logged []struct{ from, every int64 }

// loggedBy is what the command lines of a run say; nil if that is not what its last start
// did, so nobody knows.
func loggedBy(c rundir.Config) logged {
	l := logged{{0, 1}}
	if first := peek(c.Args); first.inherits() { // another run's, which nobody need have typed
		l[0].every = 0
	}
	add := func(from int64, args []string) {
		every := l[len(l)-1].every
		found := chosen.Peek(args, []string{"log-every", "log_every"}, nil)
		if n, err := strconv.ParseInt(found["log-every"]+found["log_every"], 10, 64); err == nil && n > 0 {
			every = n
		}
		for len(l) > 0 && l[len(l)-1].from >= from { // it went back behind that
			l = l[:len(l)-1]
		}
		l = append(l, struct{ from, every int64 }{from, every})
	}
	add(0, c.Args)
	for _, r := range c.Resumed {
		add(r.Step, r.Args)
	}
	if fmt.Sprint(l[len(l)-1].every) != c.Flags["log-every"] {
		return nil
	}
	return l
}

// due says whether there must be a line of a step.
func (l logged) due(step int64) bool {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].from <= step {
			return l[i].every > 0 && step%l[i].every == 0
		}
	}
	return false
}

// warnMissing warns of lines that metrics.jsonl has lost. The run goes on: what is lost is
// not made again.
func (r *recorder) warnMissing(step int64) {
	if g, some := r.metrics.Missing(step, loggedBy(r.dir.Config()).due); some {
		r.log.Warn("lines of metrics are lost, and the run goes on without them",
			"file", r.dir.MetricsFile(), "lines", fmt.Sprintf("%d of %d", g.Lines, g.Due), "steps_done", step, "first_missing_step", g.First)
	}
}
