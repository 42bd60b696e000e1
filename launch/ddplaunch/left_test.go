package main

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a rank leaves in its group ends with it, and is reaped, though the job goes on.
func TestGroupEndsWithItsRank(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "2", "sh", "-c", `[ $RANK = 1 ] || { sleep 60 & echo child $!; exit 0; }; echo ready $$; exec sleep 60`)
	other := j.numbers("ready", 1)[1]
	gone(t, j.numbers("child", 1)[0])
	if err := unix.Kill(other, unix.SIGKILL); err != nil {
		t.Fatalf("the job has ended: %v", err)
	}
	if code, out := j.end(); code != 137 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// What a rank has started and nobody waits for is reaped when it ends, while the rank runs on.
func TestOrphanEndsBeforeItsRank(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "1", "sh", "-c", `sh -c 'sleep 0.1 & echo child $!'; setsid -f sh -c 'echo daemon $$'; echo ready $$; exec sleep 60`)
	rank := j.numbers("ready", 1)[0]
	gone(t, j.numbers("child", 1)[0], j.numbers("daemon", 1)[0])
	if err := unix.Kill(rank, unix.SIGKILL); err != nil {
		t.Fatalf("the rank has ended: %v", err)
	}
	if code, out := j.end(); code != 137 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Each of the two ways in which nothing outlives a launcher that is killed does its part by
// itself: the kernel ends the ranks where the guard cannot, and the guard what they have
// left in their groups, also if it is no rank's by its environment. What asks other
// processes to end, as a batch system asks all of a job, does not end the guard.
func TestLauncherKilledInSteps(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "2", "sh", "-c", `env -u EBTRAIN_GROUP sleep 60 & echo child $!; echo ready $$; wait`)
	ranks, children := j.numbers("ready", 2), j.numbers("child", 2)
	guard := j.guard()
	if group, err := unix.Getpgid(guard); err != nil || group != guard {
		t.Errorf("who kills the launcher's group kills the guard, of group %d, too (%v)", group, err)
	}
	for deadline := time.Now().Add(patience); !ignores(guard, unix.SIGTERM); time.Sleep(time.Millisecond) { // from its start on
		if time.Now().After(deadline) {
			t.Fatal("the guard does not ignore SIGTERM")
		}
	}
	if err := unix.Kill(guard, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // for its effect, if it has one
	if err := errors.Join(unix.Kill(guard, unix.SIGSTOP), j.cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	j.end()
	for r := range 2 {
		dead(t, ranks[r])
		if err := unix.Kill(children[r], 0); err != nil {
			t.Errorf("child %d: %v", children[r], err)
		}
	}
	if err := unix.Kill(guard, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for r := range 2 {
		dead(t, children[r])
	}
	dead(t, guard)
}
