package host_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective/colltest"
)

// files are the names in /dev/shm that could be ours: other programs, too, make and
// remove what they like there.
func files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/dev/shm")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this machine has no /dev/shm")
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.Contains(e.Name(), "ebtrain") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestKilledRankLeavesNothing kills one rank of four inside an all-reduce.
// That the others are told is a test of the suite.
func TestKilledRankLeavesNothing(t *testing.T) {
	before := files(t)
	cmds := colltest.Spawn(t, 4, t.TempDir(), true)
	for r, cmd := range cmds {
		err := cmd.Wait()
		if (err == nil) == (r == 2) {
			t.Errorf("rank %d ended with %v; want a signal for rank 2 and success for the others", r, err)
		}
		if err := syscall.Kill(cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d of rank %d is still there", cmd.Process.Pid, r)
		}
	}
	if after := files(t); !slices.Equal(before, after) {
		t.Errorf("/dev/shm holds %q, before it held %q", after, before)
	}
}

// TestKilledGroupLeavesNothing kills all ranks of a group at any point of
// their lives: joining, allocating, reducing.
func TestKilledGroupLeavesNothing(t *testing.T) {
	before := files(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		cmds := colltest.Spawn(t, 3, t.TempDir(), false)
		time.Sleep(time.Duration(rng.IntN(80)) * time.Millisecond)
		for _, cmd := range cmds {
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
		for r, cmd := range cmds {
			_ = cmd.Wait() // its end is looked at below
			// Who was killed last may have noticed, and ended in good order (0),
			// or with an error that says so (3) if that was while joining.
			if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL && (r == 0 || s.ExitStatus() != 0 && s.ExitStatus() != 3) {
				t.Errorf("rank %d ended with %v", r, cmd.ProcessState)
			}
		}
	}
	if after := files(t); !slices.Equal(before, after) {
		t.Errorf("/dev/shm holds %q, before it held %q", after, before)
	}
}
