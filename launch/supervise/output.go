package supervise

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// How a rank's output comes to the console and its file, and what a rank is told of
// the terminal.

// watchReader stops the ranks when whoever read the output has gone (ddplaunch |
// head), like any program would. A terminal that goes away says so by SIGHUP.
func (a *agent) watchReader() {
	if a.cfg.TTY {
		return
	}
	select {
	case <-a.cfg.Stdout.Failed():
	case <-a.cfg.Stderr.Failed():
	case <-a.quit:
		return
	}
	a.post(func() { a.apply(a.node.Interrupt("SIGPIPE", int(unix.SIGPIPE))) })
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
