package cuda

import (
	"fmt"
	"io"

	"ebtrain/ddp/exec/plan"
)

// communication is the lane of collectives; those below it compute.
const communication = -1

// schedule says on which stream each launch of a plan is, and what it waits for
// there. Launches of a lane follow each other; the order between lanes is kept by
// events. It is a function of the plan alone, so ranks start collectives in the
// same order.
type schedule struct {
	lanes   int     // that compute
	lane    []int   // by launch; communication for a Start, any for a Wait, which is nothing
	waits   [][]int // by launch: those of other lanes that must be complete before it
	signals []bool  // by launch: one of another lane waits for it
	used    []int   // the lanes that launches are on
}

// newSchedule spreads launches over at most so many lanes. A launch follows, on its
// lane, the latest of those that it waits for and that nothing follows yet; where
// there is none it takes the lane that has been without work longest.
func newSchedule(p *plan.Plan, launches []plan.Launch, lanes int) *schedule {
	n := len(launches)
	s := &schedule{lanes: lanes, lane: make([]int, n), waits: make([][]int, n), signals: make([]bool, n)}
	deps := started(p, launches)
	last := make([]int, lanes) // by lane: its last launch, -1 if none
	for l := range last {
		last[l] = -1
	}
	collective := -1 // the last one started
	for i := range launches {
		tail := &collective
		switch opOf(p, launches[i]).(type) {
		case plan.Wait:
			continue
		case plan.Start:
			s.lane[i] = communication
		default:
			s.lane[i] = pick(deps[i], last)
			tail = &last[s.lane[i]]
		}
		*tail = i
		for _, d := range deps[i] {
			if s.lane[d] != s.lane[i] {
				s.waits[i] = append(s.waits[i], d)
				s.signals[d] = true
			}
		}
	}
	for l, t := range last {
		if t >= 0 {
			s.used = append(s.used, l)
		}
	}
	if collective >= 0 {
		s.used = append(s.used, communication)
	}
	return s
}

// opOf is the op of a launch, of its first step if it has several.
func opOf(p *plan.Plan, l plan.Launch) fmt.Stringer { return p.Steps[l.Chains[0][0]].Op }

// started are the dependencies of launches, where that on a Wait is one on the
// Start that it waits for, and on what else the Wait depends on.
func started(p *plan.Plan, launches []plan.Launch) [][]int {
	deps := make([][]int, len(launches))
	start := map[int]int{} // by number
	for i, l := range launches {
		if op, ok := opOf(p, l).(plan.Start); ok {
			start[op.Number] = i
		}
		var found []int
		seen := map[int]bool{}
		add := func(d int) {
			if !seen[d] {
				seen[d] = true
				found = append(found, d)
			}
		}
		for _, d := range l.Deps {
			if w, ok := opOf(p, launches[d]).(plan.Wait); ok {
				add(start[w.Number])
				for _, more := range deps[d] { // done already: it is an earlier launch
					add(more)
				}
				continue
			}
			add(d)
		}
		deps[i] = found
	}
	return deps
}

// pick is the lane of a launch with those dependencies.
func pick(deps, last []int) int {
	best, idle := -1, 0
	for l, t := range last {
		for _, d := range deps {
			if d == t && t >= 0 && (best < 0 || t > last[best]) {
				best = l
			}
		}
		if t < last[idle] {
			idle = l
		}
	}
	if best >= 0 {
		return best
	}
	return idle
}

// dump writes where each launch runs, what it waits for, how it is done, and which
// chains of steps it is.
func (s *schedule) dump(w io.Writer, launches []plan.Launch, units []unit) error {
	if _, err := fmt.Fprintf(w, "lanes %d\n", s.lanes); err != nil {
		return err
	}
	for i := range units {
		if units[i].work == nil {
			continue
		}
		lane := fmt.Sprint("lane ", s.lane[i])
		if s.lane[i] == communication {
			lane = "collectives"
		}
		if _, err := fmt.Fprintf(w, "%4d %s after %v: %v  # steps %v\n", i, lane, s.waits[i], units[i].work, launches[i].Chains); err != nil {
			return err
		}
	}
	return nil
}
