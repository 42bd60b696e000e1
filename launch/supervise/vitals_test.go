package supervise

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

// TestWatcher follows a rank for some seconds, four looks each.
func TestWatcher(t *testing.T) {
	for name, tt := range map[string]struct {
		looks   func(i int) look
		page    func(i int) uint64 // reports
		quiet   time.Duration
		idle    time.Duration
		stopped bool
	}{
		"at work":           {func(int) look { return look{state: 'R'} }, func(i int) uint64 { return uint64(i) }, 0, 0, false},
		"nothing at all":    {func(int) look { return look{state: 'S', ticks: 7} }, nil, 10 * time.Second, 10 * time.Second, false},
		"a tick now & then": {func(i int) look { return look{state: 'S', ticks: uint64(i / 8)} }, nil, 10 * time.Second, 10 * time.Second, false},
		"computes":          {func(i int) look { return look{state: 'R', ticks: uint64(i)} }, nil, 10 * time.Second, 0, false},
		"computed once":     {func(i int) look { return look{state: 'S', ticks: uint64(min(i, 20))} }, nil, 10 * time.Second, 5 * time.Second, false},
		"reads":             {func(i int) look { return look{state: 'S', bytes: uint64(i)} }, nil, 10 * time.Second, 0, false},
		"waits for a disk":  {func(int) look { return look{state: 'S', disk: true} }, nil, 10 * time.Second, 0, false},
		"waits in all":      {func(int) look { return look{state: 'D'} }, nil, 10 * time.Second, 0, false},
		"stopped":           {func(int) look { return look{state: 'T'} }, nil, 10 * time.Second, 10 * time.Second, true},
		"stopped a moment":  {func(i int) look { return look{state: []rune("TTS")[i%3]} }, nil, 10 * time.Second, 10 * time.Second, false},
		"traced":            {func(int) look { return look{state: 't'} }, nil, 10 * time.Second, 10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var w watcher
			begin := time.Now()
			now := begin
			for i := range 41 {
				now = begin.Add(time.Duration(i) * lookInterval)
				c := statuspage.Counts{Reports: 5}
				if tt.page != nil {
					c.Reports = tt.page(i)
				}
				if w.see(c, now) >= lookInterval {
					w.examine(tt.looks(i), now)
				}
			}
			v := w.vital(now)
			if v.Quiet != tt.quiet || v.Stopped != tt.stopped || v.Idle < tt.idle-effortWindow/2 || v.Idle > tt.idle+effortWindow {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// sleeperVar has this test binary sleep, under a name made to mislead.
const sleeperVar = "SUPERVISE_TEST_SLEEPER"

// What is read in /proc is there, also of a process with a name made to mislead.
// A rank that has written nothing yet is quiet since it was first looked at, and not for ever.
func TestWatcherBegins(t *testing.T) {
	var w watcher
	now := time.Now()
	if quiet := w.see(statuspage.Counts{}, now); quiet != 0 {
		t.Errorf("at once quiet for %v", quiet)
	}
	if quiet, v := w.see(statuspage.Counts{}, now.Add(time.Second)), w.vital(now.Add(time.Second)); quiet != time.Second || v.Idle != time.Second {
		t.Errorf("a second later quiet for %v, idle for %v", quiet, v.Idle)
	}
}

func TestLookAt(t *testing.T) {
	if os.Getenv(sleeperVar) != "" {
		time.Sleep(time.Minute)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/a) T 1" // a link, and no copy: a file just written may still be open, and cannot be run then
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^TestLookAt$")
	cmd.Env = append(os.Environ(), sleeperVar+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	await := func(state rune) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			l, err := lookAt(cmd.Process.Pid, true)
			if err == nil && l.state == state && l.bytes > 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %+v, %v, want the state %c", l, err, state)
			}
		}
	}
	await('S')
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await('T')
	if l, err := lookAt(os.Getpid(), true); err != nil || l.state == 0 || l.bytes == 0 {
		t.Errorf("of this process: %+v, %v", l, err)
	}
	if _, err := lookAt(1<<30, false); err == nil {
		t.Error("looked at nobody")
	}
}

// Processor time is the program's and the kernel's for it, and what is transferred is read and
// written; the name of a process may look like fields.
func TestFieldsOfProc(t *testing.T) {
	l, err := parseStat([]byte("7 (a) S (b) D 1 2 3 4 5 6 7 8 9 10 50 7 0 0"))
	if err != nil || l.state != 'D' || l.ticks != 57 {
		t.Errorf("got %+v, %v", l, err)
	}
	if n := transferred([]byte("rchar: 100\nwchar: 20\nsyscr: 3\nread_bytes: 4000\n")); n != 120 {
		t.Errorf("%d bytes", n)
	}
}

// twoRanks is a job of two nodes whose ranks are looked at, each at its own times: the first
// waits for the second in a collective. Times are since both have been stopped.
type twoRanks struct {
	coord *rendezvous.Coordinator
	ranks [2]watcher
	last  [2]time.Duration // when each has last written to its page
}

func newTwoRanks(last [2]time.Duration) *twoRanks {
	j := &twoRanks{coord: rendezvous.NewCoordinator(rendezvous.CoordinatorConfig{Nodes: 2, Job: "job", Self: "a", StuckAfter: 3 * time.Second}), last: last}
	for _, name := range []string{"a", "b"} {
		j.coord.Receive(name, rendezvous.Message{Kind: rendezvous.KindRegister, Node: &rendezvous.NodeInfo{Nproc: 1, Want: -1, Nodes: 2}, Command: &rendezvous.Command{}})
	}
	for _, name := range []string{"a", "b"} {
		j.coord.Receive(name, rendezvous.Message{Kind: rendezvous.KindAck})
	}
	return j
}

// look looks at a rank, and says whether that ends the job.
func (j *twoRanks) look(rank int, at time.Duration, state rune) bool {
	page := statuspage.Counts{Reports: uint64(min(at, j.last[rank]) + time.Hour)}
	page.Met[0] = statuspage.Meetings{Begun: 8, Ended: 8}
	if rank == 0 && at >= j.last[rank] {
		page.Met[0].Begun++
	}
	now := time.Unix(1000, 0).Add(at)
	w := &j.ranks[rank]
	if w.see(page, now) < quietAfter {
		return false
	}
	w.examine(look{state: state}, now)
	v := w.vital(now)
	v.Rank = rank
	for _, e := range j.coord.Receive([]string{"a", "b"}[rank], rendezvous.Message{Kind: rendezvous.KindVitals, Vitals: []rendezvous.Vital{v}}) {
		if s, ok := e.(rendezvous.Send); ok && s.Msg.Kind == rendezvous.KindAbort {
			return true
		}
	}
	return false
}

// run looks at both ranks until end; each rank's looks have a phase. It says when the job is
// ended, if it is.
func (j *twoRanks) run(phase [2]time.Duration, end time.Duration, state func(rank int, at time.Duration) rune) (time.Duration, bool) {
	const step = 25 * time.Millisecond
	for at := -2 * time.Second; at < end; at += step {
		for rank := range 2 {
			if (at-phase[rank])%lookInterval == 0 && j.look(rank, at, state(rank, at)) {
				return at, true
			}
		}
	}
	return 0, false
}

// All ranks may be stopped at one moment, and go on one after the other, whenever they are
// looked at and have last done something: nobody is blamed. One that is stopped alone is found
// in time.
func TestAllStopped(t *testing.T) {
	const until, later, promised = 5 * time.Second, 500 * time.Millisecond, 2 * time.Second
	all := func(rank int, at time.Duration) rune {
		if at >= 0 && at < until+time.Duration(rank)*later {
			return 'T'
		}
		return 'S'
	}
	alone := func(rank int, at time.Duration) rune {
		if at >= 0 && rank == 1 {
			return 'T'
		}
		return 'S'
	}
	var steps []time.Duration
	for d := time.Duration(0); d < 2*lookInterval; d += 25 * time.Millisecond {
		steps = append(steps, d)
	}
	var longest time.Duration
	for _, p0 := range steps[:len(steps)/2] {
		for _, p1 := range steps[:len(steps)/2] {
			for _, l0 := range steps {
				for _, l1 := range steps {
					phase, last := [2]time.Duration{p0, p1}, [2]time.Duration{-l0, -l1}
					if at, ended := newTwoRanks(last).run(phase, until+later+time.Second, all); ended {
						t.Fatalf("looked at %v after each full interval, %v and %v before last at work: the job is ended after %v", phase, l0, l1, at)
					}
					at, ended := newTwoRanks(last).run(phase, 2*promised, alone)
					if !ended || at > promised {
						t.Fatalf("looked at %v after each full interval, %v and %v before last at work: one is found after %v: %v", phase, l0, l1, at, ended)
					}
					longest = max(longest, at)
				}
			}
		}
	}
	t.Logf("found after %v at most", longest)
}
