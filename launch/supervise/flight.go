package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

const (
	flightFile  = "flight.txt"
	flightLines = 32   // on the console, at most
	flightSpace = 8192 // collectives that are told of all ranks together, at most
	flightLeast = 4    // and of each, at least
)

// takeFlight says what the ranks of this node did last in an epoch.
func (a *agent) takeFlight(e rendezvous.TakeFlight) {
	var all []rendezvous.Flown
	for _, p := range a.procs {
		if p == nil {
			continue
		}
		f := rendezvous.Flown{Rank: p.rank, Host: a.cfg.Node.Info.Host, Pid: p.cmd.Process.Pid, Met: p.page.Counts().Met[statuspage.Collectives], At: time.Now()}
		if r, ok := p.page.Read(); ok {
			f.During = r.String()
		}
		f.Last = p.page.Last(max(flightLeast, flightSpace/max(1, a.size)))
		f.State = p.state()
		all = append(all, f)
	}
	a.apply(a.node.Flown(e, all))
}

// state is what there is to say of the process besides what it computes.
func (p *process) state() string {
	switch {
	case p.over && p.exit.Signal != "":
		return "killed by " + p.exit.Signal
	case p.over && p.exit.Crash != "":
		return "crashed"
	case p.over:
		return fmt.Sprintf("exit status %d", p.exit.Code)
	}
	l, err := lookAt(p.cmd.Process.Pid, false)
	switch {
	case err != nil || l.state == 'Z':
		return "has ended"
	case l.state == 'T':
		return "stopped by a signal"
	case l.state == 'D':
		return "waits for a disk"
	}
	return ""
}

// showFlight shows on the console who lags, and writes all that is known to a file.
func (a *agent) showFlight(e rendezvous.ShowFlight) {
	begun := slices.ContainsFunc(e.Ranks, func(f rendezvous.Flown) bool { return f.Met.Begun > 0 })
	if e.Cause != nil && !begun {
		return // it explains nothing
	}
	dir := a.cfg.Output.Dir
	if dir == "" {
		dir = a.node.Records()
	}
	table := flightTable(e)
	if e.Cause == nil || len(e.Ranks)+len(e.Silent) > 1 && slices.ContainsFunc(e.Ranks, waits) { // else nobody lags
		for _, line := range table[:min(len(table), flightLines)] {
			a.table = append(a.table, "flight: "+line)
		}
		if n := len(table) - flightLines; n > 0 {
			a.table = append(a.table, fmt.Sprintf("flight: and %d more lines", n))
		}
	}
	if e.Cause == nil {
		a.sayTable()
	}
	if dir == "" || len(e.Ranks) == 0 {
		return
	}
	path := filepath.Join(dir, flightFile)
	if err := within(fileWait, path, func() error { return appendFile(path, flightReport(e, table, time.Now())) }); err != nil {
		a.cfg.Log.Warn("the last collectives are not kept", "error", err)
	}
}

// sayTable shows the table that waits. That of a failure waits for the ranks' last
// words: lines of the launcher between them would keep equal ones apart.
func (a *agent) sayTable() {
	for _, line := range a.table {
		a.console.say(line)
	}
	a.table = nil
}

func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// flightTable is a line for ranks that did the same last, and marks those that
// others wait for.
func flightTable(e rendezvous.ShowFlight) []string {
	var most uint64 // begun by a rank that waits in a collective, or has waited in vain
	waiting := 0
	for _, f := range e.Ranks {
		if waits(f) {
			most = max(most, f.Met.Begun)
		}
	}
	for _, f := range e.Ranks {
		if waits(f) && f.Met.Begun == most {
			waiting++
		}
	}
	type row struct {
		ranks []int
		cells [3]string
		since time.Duration
		state string // with %v for since
		mark  string
	}
	var rows []*row
	for _, f := range e.Ranks {
		r := &row{ranks: []int{f.Rank}}
		r.cells, r.state, r.since = describe(f)
		if n := most - min(most, f.Met.Begun); n > 0 && waiting > 0 {
			r.mark = fmt.Sprintf("  <-- %d behind, %s", n, waitFor(waiting))
		}
		i := slices.IndexFunc(rows, func(o *row) bool { return o.cells == r.cells && o.state == r.state && o.mark == r.mark })
		if i < 0 {
			rows = append(rows, r)
			continue
		}
		rows[i].ranks, rows[i].since = append(rows[i].ranks, f.Rank), max(rows[i].since, r.since)
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ranks\tseq\tcollective\tsize\tstate") // a buffer takes everything
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n", rankList(r.ranks), r.cells[0], r.cells[1], r.cells[2], strings.ReplaceAll(r.state, "%v", short(r.since)), r.mark)
	}
	for _, s := range e.Silent {
		_, _ = fmt.Fprintf(w, "?\t\t\t\t%s does not answer\n", s)
	}
	_ = w.Flush()
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

func waitFor(n int) string {
	if n == 1 {
		return "1 rank waits"
	}
	return fmt.Sprintf("%d ranks wait", n)
}

// waits says that a rank is in a collective, or that one has failed for it.
func waits(f rendezvous.Flown) bool {
	return f.Met.Begun > f.Met.Ended || len(f.Last) > 0 && f.Last[len(f.Last)-1].Bad
}

// describe is what a rank did last in three cells, and how long ago, whose place in
// the fourth is %v.
func describe(f rendezvous.Flown) (cells [3]string, state string, since time.Duration) {
	during := strings.TrimPrefix(f.During, "during ")
	if len(f.Last) == 0 {
		cells, state = [3]string{"-", "-", "-"}, "no collective yet"
	} else {
		c := f.Last[len(f.Last)-1]
		cells = [3]string{fmt.Sprint(c.Seq), strings.TrimRight(c.Kind+" "+c.Label, " "), size(c)}
		switch {
		case c.Ended.IsZero():
			state, since = "waits for %v", f.At.Sub(c.Begun)
			_, during, _ = strings.Cut(during, ", step ")
			if during != "" {
				during = "step " + during
			}
		case c.Bad:
			state, since = "failed after %v", c.Ended.Sub(c.Begun)
		default:
			state, since = "done %v ago", f.At.Sub(c.Ended)
		}
	}
	for _, more := range []string{during, f.State} {
		if more != "" {
			state += "; " + more
		}
	}
	return cells, state, since
}

// size is what a collective moves: "mean f32[1267584]".
func size(c rendezvous.Collective) string {
	if c.Type == "" {
		return "-"
	}
	return strings.TrimLeft(fmt.Sprintf("%s %s[%d]", c.Op, c.Type, c.Len), " ")
}

// short is d with the digits that matter.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	}
	return d.String()
}

// flightReport is all that is known, for a file.
func flightReport(e rendezvous.ShowFlight, table []string, now time.Time) []byte {
	var b bytes.Buffer
	why := "somebody asked"
	if e.Cause != nil {
		why = e.Cause.Error()
	}
	fmt.Fprintf(&b, "== %s: %s\n%s\n", now.Format(time.RFC3339), why, strings.Join(table, "\n"))
	for _, f := range e.Ranks {
		fmt.Fprintf(&b, "-- rank %d (%s, pid %d): %d begun, %d ended\n", f.Rank, f.Host, f.Pid, f.Met.Begun, f.Met.Ended)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, c := range f.Last {
			state := "runs"
			switch {
			case c.Bad:
				state = "failed after " + c.Ended.Sub(c.Begun).String()
			case !c.Ended.IsZero():
				state = "took " + c.Ended.Sub(c.Begun).String()
			}
			_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", c.Seq, c.Begun.Format("15:04:05.000000"), c.Kind, c.Label, size(c), state)
		}
		_ = w.Flush() // a buffer takes everything
	}
	b.WriteByte('\n')
	return b.Bytes()
}
