package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
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
	spared := begin(ours, "sleep", "60")
	jobs := map[string]bool{"job-e1": true}
	child := 0
	for deadline := time.Now().Add(30 * time.Second); child == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if all := leftTo(family, jobs); len(all) > 0 {
			child = all[0]
		}
	}
	found := slices.Sorted(slices.Values(append(left, spared)))
	if got := leftTo(os.Getpid(), jobs); !slices.Equal(slices.Sorted(slices.Values(got)), found) {
		t.Errorf("left are %v, want %v", got, found)
	}
	if got := leftTo(1<<30, jobs); len(got) > 0 {
		t.Errorf("left to nobody are %v", got)
	}
	looks := 0
	parent := func() int { // a machine on which the first looks take long
		if looks++; looks <= 3 {
			time.Sleep(leftWait / 2)
		}
		return os.Getpid()
	}
	ended := strings.Join(endLeft(parent, jobs, map[int]bool{spared: true}, 1), " ")
	for _, pid := range append(left, child) {
		if err := unix.Kill(pid, 0); err == nil || !strings.Contains(ended, fmt.Sprintf("(pid %d)", pid)) {
			t.Errorf("process %d has ended: %v; named are %s", pid, err, ended)
		}
	}
	for _, pid := range append(others, spared) {
		if err := unix.Kill(pid, 0); err != nil || strings.Contains(ended, fmt.Sprint(pid)) {
			t.Errorf("process %d, which is let be: %v; named are %s", pid, err, ended)
		}
	}
}

// The orphans of a rank that have ended are reaped while the job goes on, of whatever group
// or session. The rank, and what is in the group of this process, is left to who waits for it.
func TestReapOrphans(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	rank, other := exec.Command("sh", "-c", `sleep 0.1 & echo $!; setsid sh -c 'echo $$; sleep 0.1' & exit 3`), exec.Command("sh", "-c", "exit 4")
	rank.Stdout, rank.SysProcAttr = out, &unix.SysProcAttr{Setpgid: true}
	for _, cmd := range []*exec.Cmd{rank, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	zombies := func(pids ...string) bool {
		for _, pid := range pids {
			number, _ := strconv.Atoi(pid)
			if state, parent, _ := kin(number); state != "Z" || parent != os.Getpid() {
				return false
			}
		}
		return true
	}
	var orphans []string
	for end := time.Now().Add(30 * time.Second); len(orphans) < 2 || !zombies(append(orphans, fmt.Sprint(rank.Process.Pid), fmt.Sprint(other.Process.Pid))...); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(out.Name())
		if orphans = strings.Fields(string(text)); err != nil || time.Now().After(end) {
			t.Fatalf("processes %v and others have not ended: %v", orphans, err)
		}
	}
	reapOrphans(map[int]bool{rank.Process.Pid: true})
	for _, pid := range orphans {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("orphan %s is a zombie", pid)
		}
	}
	if err1, err2 := rank.Wait(), other.Wait(); fmt.Sprint(err1, err2) != "exit status 3 exit status 4" {
		t.Errorf("others waited and got %v and %v", err1, err2)
	}
}

// largeVar has this test binary be a rank's daemon with much memory and a child.
const largeVar = "SUPERVISE_TEST_LARGE"

// While the kernel takes back the memory of a large process its environment is gone, and its
// children are still its own: they are waited for.
func TestLeftByALargeOne(t *testing.T) {
	const ours = env.GroupVar + "=job-e1"
	if os.Getenv(largeVar) != "" {
		much := make([]byte, 256<<20)
		for i := 0; i < len(much); i += 4096 {
			much[i] = 1
		}
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println(child.Process.Pid)
		_ = child.Wait()
		runtime.KeepAlive(much)
	}
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestLeftByALargeOne$")
	cmd.Env = append(env.Without(os.Environ()), largeVar+"=1", ours)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // it may have ended
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	ended := strings.Join(endLeft(os.Getpid, map[string]bool{"job-e1": true}, nil, 1), " ")
	if want := fmt.Sprintf("sleep (pid %d)", child); !strings.Contains(ended, want) {
		t.Errorf("ended are %s, want also %s", ended, want)
	}
}
