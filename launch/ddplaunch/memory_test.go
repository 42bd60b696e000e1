package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/rendezvous"
)

// eatMode has rank 1 take all the memory there is.
func eatMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	// The kernel may take another of the group otherwise: the launcher, once.
	if g.Rank() == 1 {
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o644); err != nil {
			return 1, err
		}
	}
	var all [][]byte
	for g.Rank() == 1 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	<-g.Done()
	return len(all) + 1, g.Err()
}

// limited makes a control group with so many bytes of memory, and is its folder.
func limited(t *testing.T, bytes int) string {
	t.Helper()
	var failed error
	for dir, limit := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		group := fmt.Sprintf("%s/ddplaunch-test-%d", dir, os.Getpid())
		if _, err := os.Stat(dir + "/cgroup.procs"); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if err := os.Mkdir(group, 0o755); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		t.Cleanup(func() {
			var err error
			for range 100 { // what has ended leaves it in its own time
				if err = os.Remove(group); err == nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Error(err)
		})
		err := os.WriteFile(filepath.Join(group, limit), fmt.Append(nil, bytes), 0o644)
		if err == nil {
			// Where there is swap, it is no way out.
			_ = os.WriteFile(filepath.Join(group, "memory.swap.max"), []byte("0"), 0o644)
			_ = os.WriteFile(filepath.Join(group, "memory.memsw.limit_in_bytes"), fmt.Append(nil, bytes), 0o644)
			return group
		}
		failed = errors.Join(failed, err)
	}
	t.Skipf("needs to make a control group with a limit of memory: %v", failed)
	return ""
}

// limitMiB is little, so that what the kernel takes back is soon free (see TestOutOfMemory),
// and enough for a launcher under the race detector, for which 64 is not.
const limitMiB = 128

// A rank that the kernel kills for want of memory is said to be that. While the memory of
// what was killed is being freed, the kernel no longer counts it as a victim, and whoever
// asks for a page then may be the next: the launcher, now and then, which cannot be kept
// from it without CAP_SYS_RESOURCE. A run that lost its launcher shows nothing and is made
// again.
func TestOutOfMemory(t *testing.T) {
	group := limited(t, limitMiB<<20)
	for range 5 {
		text, state := starve(t, group)
		if lost := state.Sys().(syscall.WaitStatus); lost.Signaled() && lost.Signal() == syscall.SIGKILL {
			t.Log("the kernel killed the launcher, too: once more")
			continue
		}
		if code := state.ExitCode(); code != 137 {
			t.Errorf("exit code %d, want 137", code)
		}
		end := fmt.Sprintf(" MiB; the limit of its control group is %d MiB during all-reduce generator/bucket 3, seq 8812, step 41\n", limitMiB)
		if !strings.Contains(text, "): out of memory: killed by the kernel, using ") || !strings.Contains(text, end) {
			t.Errorf("got\n%s", text)
		}
		return
	}
	t.Error("the kernel killed the launcher in five runs of five")
}

// starve runs two ranks in a control group, of which one takes all the memory there is:
// what they said, and how their launcher ended.
func starve(t *testing.T, group string) (string, *os.ProcessState) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group, self, "-nproc", "2", self, "eat")
	cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState
}
