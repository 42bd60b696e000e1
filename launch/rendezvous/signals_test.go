package rendezvous

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// The same signal twice at once, as of timeout(1), is one request to stop: the second would
// end this test.
func TestSignalTwice(t *testing.T) {
	g, err := Join(t.Context(), env.Worker{Source: env.SourceNone, Size: 1, LocalSize: 1, ControlFD: -1, ProgressFD: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case <-g.StopRequested():
		case <-time.After(time.Minute):
			t.Fatal("SIGTERM is no request to stop")
		}
		time.Sleep(oneRequest / 4)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}
