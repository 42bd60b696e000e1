package results

import (
	"testing"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// TestTimed: times of a step are compared only where both were taken by as many threads; what
// else is measured does not depend on these.
func TestTimed(t *testing.T) {
	e := plan.Experiment{
		Name: "times", Seeds: []uint64{1, 2}, Columns: []string{"step-ms", "ll"}, Rows: []plan.Row{{Name: "quick"}, {Name: "slow"}},
		Checks: []judge.Check{judge.Order{Rising: judge.Rows("step-ms", "quick", "slow")}, judge.Order{Rising: judge.Rows("ll", "quick", "slow")}},
	}
	for _, tt := range []struct {
		threads [2]int // of slow, by seed; quick has one
		state   judge.State
		detail  string
	}{
		{[2]int{1, 1}, judge.Undecided, "quick is 1.5, slow is 2.95: 2 seeds, and from seed to seed it differs by 2.192"},
		{[2]int{1, 2}, judge.Holds, "for 1 seed (without those of other numbers of threads: seed 2)"},
		{[2]int{2, 2}, judge.NotRun, "no step-ms of quick, step-ms of slow (without those of other numbers of threads: seed 1 2)"},
	} {
		root := t.TempDir()
		for row, times := range map[string][2]float64{"quick": {1, 2}, "slow": {4, 1.9}} {
			for i, v := range times {
				threads := 1
				if row == "slow" {
					threads = tt.threads[i]
				}
				c := cell.Cell{Root: root, Experiment: e.Name, Row: row, Seed: uint64(i + 1)}
				if err := c.Begin(cell.Begun{Pieces: []cell.Piece{{Program: "train", Threads: threads}, {Program: "evaluate", Threads: 1}}}); err != nil {
					t.Fatal(err)
				}
				if err := c.Finish(cell.Measured{Ended: began.Add(time.Minute), Values: map[string]float64{"step-ms": v, "ll": v}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		all := s.verdicts()
		if all[1].State != judge.Undecided {
			t.Errorf("threads %v: of likelihoods: %v", tt.threads, all[1])
		}
		if v := all[0]; v.State != tt.state || v.Detail != tt.detail {
			t.Errorf("threads %v: %v, %q; want %v, %q", tt.threads, v.State, v.Detail, tt.state, tt.detail)
		}
	}
}
