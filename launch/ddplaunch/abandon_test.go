package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ebtrain/launch/exitcode"
)

// A rank that cannot be killed does not keep the job for ever. To its parent, a process
// that is traced has not ended until the tracer takes note of it: one that stands in the
// kernel looks the same, and cannot be made at will.
func TestUnkillableRank(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "2", "--max-restarts", "1", "RANKS", "wait")
	pids := j.numbers("ready", 2)
	defer trace(t, pids[1])()
	if err := unix.Kill(pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, out := j.end()
	if code != 128+9 {
		t.Errorf("exit code %d, want 137", code)
	}
	want(t, out,
		fmt.Sprintf("ddplaunch: rank 1 (pid %d) was killed and does not end: process %d traces it (a debugger?); it is left behind, with what it holds\n", pids[1], os.Getpid()),
		fmt.Sprintf("pid %d): killed by SIGKILL during all-reduce generator/bucket 3, seq 8812, step 41\n", pids[0]))
}

// trace makes this process the tracer of another until the function that it returns is
// called.
func trace(t *testing.T, pid int) (end func()) {
	t.Helper()
	traced, over, done := make(chan error), make(chan struct{}), make(chan struct{})
	go func() { // on a thread of its own: a tracer is a thread
		defer close(done)
		runtime.LockOSThread()
		err := unix.PtraceSeize(pid)
		traced <- err
		if err != nil {
			return
		}
		<-over
		_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
	}()
	if err := <-traced; err != nil {
		<-done
		t.Skipf("no process may be traced here, so no rank that cannot be killed is made (the scenario abandoned of package rendezvous and TestLingers of supervise run all the same): %v", err)
	}
	return func() { close(over); <-done }
}

// A guard that somebody has stopped does not keep the launcher, which has ended all ranks.
func TestStoppedGuard(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "1", "RANKS", "wait")
	j.numbers("ready", 1)
	guard := j.guard()
	if err := errors.Join(unix.Kill(guard, unix.SIGSTOP), j.cmd.Process.Signal(unix.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	if code, out := j.end(); code != exitcode.Requeue {
		t.Errorf("exit code %d, want 75\n%s", code, out)
	}
	gone(t, guard)
}

// A job that ends well has, also where somebody has killed the guard.
func TestKilledGuard(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/over"
	j := start(t, nil, "-nproc", "1", "sh", "-c", `echo ready $$; until [ -e "$0" ]; do sleep 0.05; done`, file)
	j.numbers("ready", 1)
	guard := j.guard()
	if err := errors.Join(unix.Kill(guard, unix.SIGKILL), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	code, out := j.end()
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "ddplaunch: warning: ", "guard")
	gone(t, guard)
}

// guard is the guard of a launcher, whose ranks run.
func (j *job) guard() int {
	j.t.Helper()
	for _, pid := range children(j.t, j.cmd.Process.Pid) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(line), "ddplaunch-guard") {
			return pid
		}
	}
	j.t.Fatal("there is no guard")
	return 0
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // of a thread that has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, child)
		}
	}
	return all
}
