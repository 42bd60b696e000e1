package cuda

import (
	"fmt"
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
				checkSchedule(t, p, newSchedule(p, lanes))
			})
		}
	}
}

func checkSchedule(t *testing.T, p *plan.Plan, s *schedule) {
	t.Helper()
	n := len(p.Steps)
	after := make([][]bool, n) // by step: what is complete when it begins
	last, used := map[int]int{}, map[int]bool{}
	started := map[int]int{}
	for i := range p.Steps {
		after[i] = make([]bool, n)
		follow := func(d int) {
			after[i][d] = true
			for k, is := range after[d] {
				after[i][k] = after[i][k] || is
			}
		}
		switch op := p.Steps[i].Op.(type) {
		case plan.Wait: // nothing: who waits for it waits for the Start
			follow(started[op.Number])
			for _, d := range p.Deps()[i] {
				follow(d)
			}
			continue
		case plan.Start:
			started[op.Number] = i
			if s.lane[i] != communication {
				t.Errorf("step %d, a collective, is on lane %d", i, s.lane[i])
			}
		}
		used[s.lane[i]] = true
		if l, ok := last[s.lane[i]]; ok {
			follow(l)
		}
		last[s.lane[i]] = i
		for _, d := range s.waits[i] {
			if !s.signals[d] {
				t.Errorf("step %d waits for step %d, which does not signal", i, d)
			}
			follow(d)
		}
	}
	for i, deps := range p.Deps() {
		for _, d := range deps {
			if !after[i][d] {
				t.Errorf("step %d (%v) may begin before step %d (%v) is complete", i, p.Steps[i].Op, d, p.Steps[d].Op)
			}
		}
	}
	if len(used) != len(s.used) {
		t.Errorf("lanes %v are joined, and %v are used", s.used, used)
	}
}
