package supervise

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
