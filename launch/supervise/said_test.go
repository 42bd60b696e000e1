package supervise

import (
	"bytes"
	"testing"

	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
)

// At the end of a job each thing is said once.
func TestSaidOnce(t *testing.T) {
	raised := &rendezvous.Cause{Kind: rendezvous.CauseRaised, Rank: 0, Host: "h", Pid: 7, Text: "a holds a run"}
	exit := &rendezvous.Cause{Kind: rendezvous.CauseExit, Rank: 1, Host: "h", Pid: 8, ExitCode: 2}
	during := &rendezvous.Cause{Kind: rendezvous.CauseExit, Rank: 1, Host: "h", Pid: 8, ExitCode: 2, During: "during load"}
	type line struct {
		rank int
		text string
	}
	for _, tt := range []struct {
		name  string
		lines []line
		cause *rendezvous.Cause
		want  string
	}{
		{"all ranks say it, late", []line{{0, "train: --out is required"}, {1, "train: --out is required"}}, exit, "[0] train: --out is required\n"},
		{"other ranks say other things", []line{{0, "train: a"}, {1, "train: b"}}, exit, "[0] train: a\n[1] train: b\n"},
		{"a rank says it twice", []line{{1, "train: a"}, {1, "train: a"}}, exit, "[1] train: a\n[1] train: a\n"},
		{"the rank that failed is silent", []line{{0, "train: a"}}, exit, "[0] train: a\nddplaunch: rank 1 (h, pid 8): exit status 2\n"},
		{"it ends with other words", []line{{1, "train: a"}, {1, "Traceback"}}, exit, "[1] train: a\n[1] Traceback\nddplaunch: rank 1 (h, pid 8): exit status 2\n"},
		{"it was at work", []line{{1, "train: a"}}, during, "[1] train: a\nddplaunch: rank 1 (h, pid 8): exit status 2 during load\n"},
		{"raised and said", []line{{0, "train: rank 0 (h, pid 7): a holds a run"}, {1, "train: rank 0 (h, pid 7): a holds a run"}}, raised, "[0] train: rank 0 (h, pid 7): a holds a run\n"},
		{"raised only", nil, raised, "ddplaunch: rank 0 (h, pid 7): a holds a run\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, err bytes.Buffer
			o, e := outlet.Pair(&out, &err)
			c := newConsole(o, e, false, nil, 2)
			c.name = "ddplaunch"
			c.ending()
			for _, l := range tt.lines {
				c.line(l.rank, stderr, l.text)
				c.mu.Lock()
				c.emit(true) // no waiting for equals
				c.mu.Unlock()
			}
			c.conclude(tt.cause, "train")
			if e := c.flush(); e != nil || err.String() != tt.want {
				t.Errorf("%v, got\n%s\nwant\n%s", e, err.String(), tt.want)
			}
		})
	}
	// While the job runs, nothing is left out.
	var out, err bytes.Buffer
	o, e := outlet.Pair(&out, &err)
	c := newConsole(o, e, false, nil, 2)
	c.name = "ddplaunch"
	for rank := range 2 {
		c.line(rank, stderr, "train: warning: slow")
		c.mu.Lock()
		c.emit(true)
		c.mu.Unlock()
	}
	if e := c.flush(); e != nil || err.String() != "[0] train: warning: slow\n[1] train: warning: slow\n" {
		t.Errorf("%v, got %q", e, err.String())
	}
}

// What the ranks of one epoch have said at its end is not said of those of the next, nor for
// them, and does not leave out what they say.
func TestSaidInTheLastEpoch(t *testing.T) {
	var out, err bytes.Buffer
	o, e := outlet.Pair(&out, &err)
	c := newConsole(o, e, false, nil, 3)
	c.name = "ddplaunch"
	say := func(rank int, text string) {
		c.line(rank, stderr, text)
		c.mu.Lock()
		c.emit(true)
		c.mu.Unlock()
	}
	c.ending()
	c.line(1, stderr, "train: no memory") // and waits for equals
	c.begin()
	say(0, "train: slow")
	say(2, "train: slow")
	say(0, "train: no memory")
	if c.fold.ending {
		t.Error("lines wait as at the end")
	}
	c.ending()
	c.conclude(&rendezvous.Cause{Kind: rendezvous.CauseExit, Rank: 1, Host: "h", Pid: 8, ExitCode: 3}, "train")
	const want = "[1] train: no memory\n[0] train: slow\n[2] train: slow\n[0] train: no memory\nddplaunch: rank 1 (h, pid 8): exit status 3\n"
	if e := c.flush(); e != nil || err.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", e, err.String(), want)
	}
}

// Only complaints are said once: results on standard output that are equal are those of each
// rank.
func TestResultsAreNoEchoes(t *testing.T) {
	s := said{ending: true}
	for rank := range 2 {
		if s.add(folded{stream: stdout, text: "done", ranks: []int{rank}}) {
			t.Errorf("the line of rank %d is left out", rank)
		}
	}
	s.add(folded{stream: stderr, text: "why", ranks: []int{0}})
	if !s.add(folded{stream: stderr, text: "why", ranks: []int{1}}) {
		t.Error("a complaint is shown again")
	}
}
