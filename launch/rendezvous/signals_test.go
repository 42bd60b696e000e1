package rendezvous

import (
	"os"
	"os/signal"
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

func terminate(t *testing.T) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
