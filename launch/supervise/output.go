package supervise

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
)

// How a rank's output comes to the console and its file, and what a rank is told of
// the terminal.

// watchReader stops the ranks when whoever read the output has gone (ddplaunch |
// head), like any program would, and when the output cannot be written for another reason,
// such as a full disk. A terminal that goes away says so by SIGHUP.
func (a *agent) watchReader() {
	if a.cfg.TTY {
		return
	}
	var err error
	select {
	case <-a.cfg.Stdout.Failed():
		err = a.cfg.Stdout.Flush()
	case <-a.cfg.Stderr.Failed():
		err = a.cfg.Stderr.Flush()
	case <-a.quit:
		return
	}
	if errors.Is(err, unix.EPIPE) {
		a.post(func() { a.apply(a.node.Interrupt("SIGPIPE", int(unix.SIGPIPE))) })
		return
	}
	a.post(func() {
		a.unwritten = true
		a.console.say(unwritten(err).Error() + ": the job is stopped")
		a.apply(a.node.Interrupt("SIGTERM", int(unix.SIGTERM)))
	})
}

// unwritten says that the ranks' output could not be written.
func unwritten(err error) error { return fmt.Errorf("write the ranks' output: %w", err) }

// code is the exit code: one that asks for another try, or that of a request to stop, is
// none where the output cannot be written, since that would fail again. Where no rank has
// failed there are no other codes.
func (a *agent) code() int {
	c := a.finish.Cause
	switch {
	case !a.unwritten:
	case a.finish.Code == exitcode.Requeue, c == nil && a.finish.Code != exitcode.Done, c != nil && c.Kind == rendezvous.CauseStopped:
		return exitcode.Failed
	}
	return a.finish.Code
}

// environ is the environment of a rank. No file is waited for after until.
func (a *agent) environ(w env.Worker, until time.Time) []string {
	out := a.errorVar(env.Without(a.cfg.Environ), w.Rank, until)
	if n := a.columns(w.Rank); n > 0 {
		out = append(out, "COLUMNS="+strconv.Itoa(n))
	}
	return out
}

// columns is what the terminal has for the lines of a rank, behind its prefix;
// 0 if that is not known.
func (a *agent) columns(rank int) int {
	if a.cfg.Columns == nil {
		return 0
	}
	n := a.cfg.Columns()
	if n <= 0 {
		return 0
	}
	return max(1, n-len(prefix([]int{rank}))-1)
}

// resized tells everybody who draws that the terminal has another width.
func (a *agent) resized() {
	for _, p := range a.procs {
		if p != nil {
			p.page.SetWidth(a.columns(p.rank))
		}
	}
	a.console.redraw()
}

// carry takes a stream of a rank to the console and its file.
func (a *agent) carry(p *process, rank, stream int) {
	console, file := a.cfg.Output.toConsole(p.local, stream), a.cfg.Output.toFile(p.local, stream)
	l := &lines{
		line: func(text string) {
			if stream == stderr {
				p.crash.line(text)
			}
			if console {
				a.console.line(rank, stream, text)
			}
			if file {
				p.log.line(text)
			}
		},
		status: func(text string) {
			if console {
				a.console.status(rank, text)
			}
		},
	}
	if err := p.carry(stream, l); err != nil {
		a.cfg.Log.Warn("output of a rank was cut short", "rank", rank, "error", err)
	}
	if file {
		p.log.flush()
	}
}
