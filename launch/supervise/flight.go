package supervise

import (
	"fmt"
	"strings"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

// flown is how far a rank of this node has come.
type flown struct {
	rank   int
	met    statuspage.Meetings // collectives
	during string
}

// flight is a table of ranks, a line each, that marks those that others wait
// for.
func flight(ranks []flown) []string {
	var most uint64 // begun by a rank that is in a collective
	for _, f := range ranks {
		if f.met.Begun > f.met.Ended {
			most = max(most, f.met.Begun)
		}
	}
	lines := []string{fmt.Sprintf("%6s %12s %12s  %s", "rank", "begun", "ended", "last seen")}
	for _, f := range ranks {
		line := fmt.Sprintf("%6d %12d %12d  %s", f.rank, f.met.Begun, f.met.Ended, strings.TrimPrefix(f.during, "during "))
		switch {
		case f.met.Begun < most:
			line += fmt.Sprintf("  <-- %d behind: others wait for it", most-f.met.Begun)
		case f.met.Begun > f.met.Ended:
			line += "  (waits)"
		}
		lines = append(lines, line)
	}
	return lines
}

// showFlight shows who lags, and has the ranks show their last collectives.
func (a *agent) showFlight() {
	var ranks []flown
	for _, p := range a.procs {
		if p == nil || p.over {
			continue
		}
		f := flown{rank: p.rank, met: p.page.Counts().Met[statuspage.Collectives]}
		if r, ok := p.page.Read(); ok {
			f.during = r.String()
		}
		ranks = append(ranks, f)
		p.out.put(rendezvous.Message{Kind: rendezvous.KindFlight})
	}
	for _, line := range flight(ranks) {
		a.console.say(line)
	}
}
