package rendezvous

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// The same signal twice at once, as of timeout(1), is one request to stop: the second would
// end this test. It is not sent by a test that has stood still since the first.
func TestSignalTwice(t *testing.T) {
	for twice := false; !twice; {
		g, err := Join(t.Context(), env.Worker{Source: env.SourceNone, Size: 1, LocalSize: 1, ControlFD: -1, ProgressFD: -1})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		terminate(t)
		select {
		case <-g.StopRequested():
		case <-time.After(time.Minute):
			t.Fatal("SIGTERM is no request to stop")
		}
		time.Sleep(oneRequest / 20)
		if twice = time.Since(begun) < oneRequest/4; twice {
			terminate(t)
			time.Sleep(oneRequest / 20)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A batch system's SIGTERM, which comes more than once, is one request to stop for a rank, too,
// however far apart they are: the second would end this test.
func TestBatchSystemAsksRank(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "1")
	defer signal.Reset(unix.SIGTERM)
	g, err := Join(t.Context(), env.Worker{Source: env.SourceNone, Size: 1, LocalSize: 1, ControlFD: -1, ProgressFD: -1})
	if err != nil {
		t.Fatal(err)
	}
	terminate(t)
	select {
	case <-g.StopRequested():
	case <-time.After(time.Minute):
		t.Fatal("SIGTERM is no request to stop")
	}
	time.Sleep(2 * oneRequest)
	terminate(t)
	time.Sleep(oneRequest / 20)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

// terminate sends this process a SIGTERM, and returns when it has come: the thread that the
// kernel gives it to may have no processor for a while.
func terminate(t *testing.T) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for pending := true; pending; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(status), "ShdPnd:")
		text, _, _ = strings.Cut(text, "\n")
		signals, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil {
			t.Fatalf("signals that are pending: %v", err)
		}
		pending = signals&(1<<(unix.SIGTERM-1)) != 0
	}
}
