package cuda

import (
	"fmt"
	"io"

	"ebtrain/ddp/exec/plan"
)

// communication is the lane of collectives; those below it compute.
const communication = -1

// schedule says on which stream each step of a plan is, and what it waits for
// there. Steps of a lane follow each other; the order between lanes is kept by
// events. It is a function of the plan alone, so ranks start collectives in the
// same order.
type schedule struct {
	lanes   int     // that compute
	lane    []int   // by step; communication for a Start, any for a Wait, which is nothing
	waits   [][]int // by step: steps of other lanes that must be complete before it
	signals []bool  // by step: a step of another lane waits for it
	used    []int   // the lanes that steps are on
}

// newSchedule spreads the steps over at most so many lanes. A step follows, on its
// lane, the latest of those that it waits for and that nothing follows yet; where
// there is none it takes the lane that has been without work longest.
func newSchedule(p *plan.Plan, lanes int) *schedule {
	n := len(p.Steps)
	s := &schedule{lanes: lanes, lane: make([]int, n), waits: make([][]int, n), signals: make([]bool, n)}
	deps := started(p)
	last := make([]int, lanes) // by lane: its last step, -1 if none
	for l := range last {
		last[l] = -1
	}
	collective := -1 // the last one started
	for i := range p.Steps {
		tail := &collective
		switch p.Steps[i].Op.(type) {
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

// started are the dependencies of the steps, where that on a Wait is one on the
// Start that it waits for, and on what else the Wait depends on.
func started(p *plan.Plan) [][]int {
	deps := p.Deps()
	start := map[int]int{} // by number
	for i := range p.Steps {
		if op, ok := p.Steps[i].Op.(plan.Start); ok {
			start[op.Number] = i
		}
	}
	for i, list := range deps {
		var found []int
		seen := map[int]bool{}
		add := func(d int) {
			if !seen[d] {
				seen[d] = true
				found = append(found, d)
			}
		}
		for _, d := range list {
			if w, ok := p.Steps[d].Op.(plan.Wait); ok {
				add(start[w.Number])
				for _, more := range deps[d] { // done already: it is an earlier step
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

// pick is the lane of a step with those dependencies.
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

// dump writes where each step runs, what it waits for and how it is done.
func (s *schedule) dump(w io.Writer, steps []step) error {
	if _, err := fmt.Fprintf(w, "lanes %d\n", s.lanes); err != nil {
		return err
	}
	for i := range steps {
		if steps[i].work == nil {
			continue
		}
		lane := fmt.Sprint("lane ", s.lane[i])
		if s.lane[i] == communication {
			lane = "collectives"
		}
		if _, err := fmt.Fprintf(w, "%4d %s after %v: %v\n", i, lane, s.waits[i], steps[i].work); err != nil {
			return err
		}
	}
	return nil
}
