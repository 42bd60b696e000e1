package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// What a job has left to a process is its children that have the job in their environment,
// whatever they are called, and then their children: they end, are named, and are no zombies.
// What is another job's or nobody's is let be, and so is what is left to somebody else.
func TestLeft(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	misleading := t.TempDir() + "/a) S 1"
	if err := os.Symlink(sleep, misleading); err != nil {
		t.Fatal(err)
	}
	begin := func(job string, args ...string) int {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(env.Without(os.Environ()), job)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // it may have ended
		return cmd.Process.Pid
	}
	const ours = env.GroupVar + "=job-e1"
	family := begin(ours, "sh", "-c", `sleep 60 & wait`)
	left := []int{family, begin(ours, misleading, "60")}
	others := []int{begin(env.GroupVar+"=job-e11", "sleep", "60"), begin("X"+ours, "sleep", "60")}
	jobs := map[string]bool{"job-e1": true}
	child := 0
	for deadline := time.Now().Add(30 * time.Second); child == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if all := leftTo(family, jobs); len(all) > 0 {
			child = all[0]
		}
	}
	slices.Sort(left)
	if got := leftTo(os.Getpid(), jobs); !slices.Equal(slices.Sorted(slices.Values(got)), left) {
		t.Errorf("left are %v, want %v", got, left)
	}
	if got := leftTo(1<<30, jobs); len(got) > 0 {
		t.Errorf("left to nobody are %v", got)
	}
	ended := strings.Join(endLeft(os.Getpid, jobs, 1), " ")
	for _, pid := range append(left, child) {
		if err := unix.Kill(pid, 0); err == nil || !strings.Contains(ended, fmt.Sprintf("(pid %d)", pid)) {
			t.Errorf("process %d has ended: %v; named are %s", pid, err, ended)
		}
	}
	for _, pid := range others {
		if err := unix.Kill(pid, 0); err != nil || strings.Contains(ended, fmt.Sprint(pid)) {
			t.Errorf("process %d, which is let be: %v; named are %s", pid, err, ended)
		}
	}
}
