package results

import (
	"strings"
	"testing"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// TestTimed: times of a step are compared only where both were taken by as many threads of one
// machine; what else is measured does not depend on these.
func TestTimed(t *testing.T) {
	e := plan.Experiment{
		Name: "times", Seeds: []uint64{1, 2}, Columns: []string{"step-ms", "ll"}, Rows: []plan.Row{{Name: "quick"}, {Name: "slow"}},
		Checks: []judge.Check{judge.Order{Rising: judge.Rows("step-ms", "quick", "slow")}, judge.Order{Rising: judge.Rows("ll", "quick", "slow")}},
	}
	for _, tt := range []struct {
		slow   [2]setup // by seed; quick has one thread of machine a
		state  judge.State
		detail string
	}{
		{[2]setup{{1, "a"}, {1, "a"}}, judge.Undecided, "quick is 1.5, slow is 2.95: 2 seeds, and from seed to seed it differs by 2.192"},
		{[2]setup{{1, "a"}, {2, "a"}}, judge.Holds, "for 1 seed (without those of other numbers of threads: seed 2)"},
		{[2]setup{{2, "a"}, {2, "a"}}, judge.NotRun, "no step-ms of quick, step-ms of slow (without those of other numbers of threads: seed 1 2)"},
		{[2]setup{{1, "a"}, {1, "b"}}, judge.Holds, "for 1 seed (without those of other machines: seed 2)"},
		{[2]setup{{1, "b"}, {2, "a"}}, judge.NotRun, "no step-ms of quick, step-ms of slow (without those of other machines: seed 1; without those of other numbers of threads: seed 2)"},
		{[2]setup{{2, "b"}, {2, "b"}}, judge.NotRun, "no step-ms of quick, step-ms of slow (without those of other machines: seed 1 2)"},
	} {
		root := t.TempDir()
		for i, quick := range []float64{1, 2} {
			put(t, root, "quick", uint64(i+1), setup{1, "a"}, quick)
			put(t, root, "slow", uint64(i+1), tt.slow[i], []float64{4, 1.9}[i])
		}
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		all := s.verdicts()
		if all[1].State != judge.Undecided {
			t.Errorf("%v: of likelihoods: %v", tt.slow, all[1])
		}
		if v := all[0]; v.State != tt.state || v.Detail != tt.detail {
			t.Errorf("%v: %v, %q; want %v, %q", tt.slow, v.State, v.Detail, tt.state, tt.detail)
		}
	}
}

// setup is what a cell was trained with.
type setup struct {
	threads int
	machine string
}

// put makes a finished cell of the experiment "times"; value is both its time and its
// likelihood.
func put(t *testing.T, root, row string, seed uint64, on setup, value float64) {
	t.Helper()
	c := cell.Cell{Root: root, Experiment: "times", Row: row, Seed: seed}
	if err := c.Begin(cell.Begun{Pieces: []cell.Piece{{Program: "train", Threads: on.threads}, {Program: "evaluate", Threads: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(cell.Measured{Machine: on.machine, Ended: began.Add(time.Duration(seed) * time.Minute), Values: map[string]float64{"step-ms": value, "ll": value}}); err != nil {
		t.Fatal(err)
	}
}

// TestTimedAlone: where times are what is measured, all cells are of the newest one's machine.
func TestTimedAlone(t *testing.T) {
	e := plan.Experiment{Name: "times", Seeds: []uint64{1, 2}, Columns: []string{"step-ms"}, Rows: []plan.Row{{Name: "a"}, {Name: "b"}}}
	root := t.TempDir()
	put(t, root, "a", 1, setup{1, "old"}, 1)
	put(t, root, "b", 1, setup{1, "old"}, 1)
	put(t, root, "b", 2, setup{1, "new"}, 1)
	for alone, want := range map[bool]struct {
		counted int
		left    string
	}{
		false: {3, "not begun: a seed 2"},
		true:  {1, "of another machine (old), left out: a seed 1; b seed 1; not begun: a seed 2"},
	} {
		e.Alone = alone
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		if left := strings.Join(s.left, "; "); len(s.finished) != want.counted || left != want.left {
			t.Errorf("times measured: %t: %d cells, without %s; want %d, without %s", alone, len(s.finished), left, want.counted, want.left)
		}
	}
}
