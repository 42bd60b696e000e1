package cuda

import (
	"fmt"
	"slices"
	"testing"

	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// TestScheduleKeepsDependencies replays schedules as a device would see them: a step
// comes after those before it on its lane and those that it waits for, and after
// nothing else. Whatever the plan asks for must follow.
func TestScheduleKeepsDependencies(t *testing.T) {
	for _, c := range exectest.Networks() {
		g, err := c.Graph(graph.F32, graph.Input)
		if err != nil {
			t.Fatal(err)
		}
		for _, lanes := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("%s, %d lanes", c.Name, lanes), func(t *testing.T) {
				p := plan.New(g, plan.Options{World: 2, WeightsLast: true, WidenBF16: true, Apart: apart})
				p.Allocate()
				for _, own := range []bool{false, true} {
					launches := Launches(p, func(int) bool { return own })
					checkSchedule(t, p, launches, newSchedule(p, launches, lanes))
				}
			})
		}
	}
}

// checkSchedule checks what the plan asks for of steps, which begin and end with their
// launches; those of a chain follow each other.
func checkSchedule(t *testing.T, p *plan.Plan, launches []plan.Launch, s *schedule) {
	t.Helper()
	after := make([][]bool, len(launches)) // by launch: those that are complete when it begins
	last, used := map[int]int{}, map[int]bool{}
	start := map[int]int{}
	for n, l := range launches {
		after[n] = make([]bool, len(launches))
		follow := func(d int) {
			after[n][d] = true
			for k, is := range after[d] {
				after[n][k] = after[n][k] || is
			}
		}
		switch op := opOf(p, l).(type) {
		case plan.Wait: // nothing: who waits for it waits for the Start
			follow(start[op.Number])
			for _, d := range l.Deps {
				follow(d)
			}
			continue
		case plan.Start:
			start[op.Number] = n
			if s.lane[n] != communication {
				t.Errorf("launch %d, a collective, is on lane %d", n, s.lane[n])
			}
		}
		used[s.lane[n]] = true
		if k, ok := last[s.lane[n]]; ok {
			follow(k)
		}
		last[s.lane[n]] = n
		for _, d := range s.waits[n] {
			if !s.signals[d] {
				t.Errorf("launch %d waits for launch %d, which does not signal", n, d)
			}
			follow(d)
		}
	}
	of, chain := make([]int, len(p.Steps)), make([][]int, len(p.Steps)) // by step
	for n, l := range launches {
		for _, c := range l.Chains {
			for _, i := range c {
				of[i], chain[i] = n, c
			}
		}
	}
	// complete says whether launch d, or all that a Wait is, is complete when launch n begins
	complete := func(n, d int) bool {
		if _, ok := opOf(p, launches[d]).(plan.Wait); !ok {
			return after[n][d]
		}
		for k, is := range after[d] {
			if _, wait := opOf(p, launches[k]).(plan.Wait); is && !wait && !after[n][k] {
				return false
			}
		}
		return true
	}
	for i, deps := range p.Deps() {
		for _, d := range deps {
			if of[d] == of[i] && slices.Index(chain[i], d) >= 0 && slices.Index(chain[i], d) < slices.Index(chain[i], i) {
				continue
			}
			if !complete(of[i], of[d]) {
				t.Errorf("step %d (%v) may begin before step %d (%v) is complete", i, p.Steps[i].Op, d, p.Steps[d].Op)
			}
		}
	}
	if len(used) != len(s.used) {
		t.Errorf("lanes %v are joined, and %v are used", s.used, used)
	}
}
