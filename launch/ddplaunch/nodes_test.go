package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

var secret = []string{"EBTRAIN_KEY=a secret of the test, long enough"}

var joinHint = regexp.MustCompile(`--join (\S+) `)

// nodes starts node 0 on address and n-1 nodes that join it. Each is told its number:
// in which order launchers that are started together arrive is the system's affair.
func nodes(t *testing.T, address string, n int, args ...string) []*job {
	t.Helper()
	first := start(t, secret, append([]string{"--nnodes", fmt.Sprint(n), "--node-rank", "0", "--rdzv-endpoint", address}, slices.Clone(args)...)...)
	all := []*job{first}
	for i := 1; i < n; i++ {
		all = append(all, start(t, secret, append([]string{"--nnodes", fmt.Sprint(n), "--node-rank", fmt.Sprint(i), "--join", first.endpoint()}, slices.Clone(args)...)...))
	}
	return all
}

// endpoint is where others join this job.
func (j *job) endpoint() string {
	j.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if m := joinHint.FindStringSubmatch(j.output()); m != nil {
			return m[1]
		}
	}
	j.t.Fatalf("no address to join in\n%s", j.output())
	return ""
}

func TestSeveralNodes(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			if l, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0); strings.Contains(address, "::") && err != nil {
				t.Skip("this machine has no IPv6")
			} else if err == nil {
				_ = unix.Close(l)
			}
			all := nodes(t, address, 3, "-nproc", "2", "RANKS", "gather")
			for _, j := range all {
				code, out := j.end()
				if code != 0 {
					t.Errorf("exit code %d", code)
				}
				want(t, out, "first: [first-of-0 first-of-1 first-of-2 first-of-3 first-of-4 first-of-5]\n", "sizes 6 0 1000, hosts 6")
			}
		})
	}
}

// Nodes that are told no number get one as they arrive.
func TestNodesWithoutNumbers(t *testing.T) {
	t.Parallel()
	first := start(t, secret, "--nnodes", "3", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "RANKS", "gather")
	all := []*job{first}
	for range 2 {
		all = append(all, start(t, secret, "--nnodes", "3", "--join", first.endpoint(), "RANKS", "gather"))
	}
	for _, j := range all {
		code, out := j.end()
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		want(t, out, "first: [first-of-0 first-of-1 first-of-2]\n")
	}
}

// A rank killed on one node ends the job on both, with the same line and code.
func TestKilledRankOnAnotherNode(t *testing.T) {
	t.Parallel()
	all := nodes(t, "127.0.0.1:0", 2, "-nproc", "2", "RANKS", "wait")
	all[0].numbers("ready", 2)
	pids := all[1].numbers("ready", 2)
	if err := unix.Kill(pids[3], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		code, out := j.end()
		if code != 137 {
			t.Errorf("exit code %d, want 137", code)
		}
		want(t, out, fmt.Sprintf("pid %d): killed by SIGKILL during all-reduce generator/bucket 3, seq 8812, step 41\n", pids[3]), "ddplaunch: rank 3 (")
	}
}

// A launcher is killed, its ranks with it: the others know at once, and what it
// was.
func TestKilledLauncherOfANode(t *testing.T) {
	for lost, says := range map[int]string{
		0: "): its launcher was killed, ranks 0-1 and the coordinator with it\n",
		1: "): its launcher was killed, ranks 2-3 with it\n",
	} {
		t.Run(fmt.Sprint("node ", lost), func(t *testing.T) {
			t.Parallel()
			all := nodes(t, "127.0.0.1:0", 3, "-nproc", "2", "RANKS", "wait")
			for _, j := range all {
				j.numbers("ready", 2)
			}
			if err := all[lost].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for i, j := range all {
				if i == lost {
					continue
				}
				code, out := j.end()
				t.Logf("noticed and ended after %v", time.Since(began))
				if code != 1 || time.Since(began) > endsWithin {
					t.Errorf("exit code %d after %v", code, time.Since(began))
				}
				want(t, out, fmt.Sprintf("ddplaunch: node %d (", lost), says)
			}
		})
	}
}

// A launcher stands still while its host lives: the others know that after two seconds
// or so. Its ranks end, too, and when it wakes up it ends.
func TestFrozenLauncher(t *testing.T) {
	for frozen, says := range map[int]string{
		0: "): lost with rank 0 and the coordinator: its launcher does not answer, though its host does: it is stopped, or gets no processor time\n",
		1: "): lost with rank 1: its launcher does not answer, though its host does: it is stopped, or gets no processor time\n",
	} {
		t.Run(fmt.Sprint("node ", frozen), func(t *testing.T) {
			t.Parallel()
			all := nodes(t, "127.0.0.1:0", 3, "RANKS", "wait")
			for _, j := range all {
				j.numbers("ready", 1)
			}
			if err := all[frozen].cmd.Process.Signal(unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for i, j := range all {
				if i == frozen {
					continue
				}
				code, out := j.end()
				t.Logf("noticed and ended after %v", time.Since(began))
				if code != 1 || time.Since(began) > endsWithin {
					t.Errorf("exit code %d after %v", code, time.Since(began))
				}
				want(t, out, fmt.Sprintf("ddplaunch: node %d (", frozen), says)
			}
			if err := all[frozen].cmd.Process.Signal(unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if code, out := all[frozen].end(); code != 1 {
				t.Errorf("the one that woke up ended with %d:\n%s", code, out)
			}
		})
	}
}

// A launcher that gets no processor time for a second is not lost.
func TestHeldUpLauncher(t *testing.T) {
	const held, lost = time.Second, 1200 * time.Millisecond
	t.Parallel()
	for range 5 { // until this process is not held up itself
		all := nodes(t, "127.0.0.1:0", 3, "RANKS", "wait")
		for _, j := range all {
			j.numbers("ready", 1)
		}
		began := time.Now()
		for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
			if err := all[1].cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if s == unix.SIGSTOP {
				time.Sleep(held)
			}
		}
		long := time.Since(began)
		time.Sleep(held)                           // who has begun to judge may still do so
		_ = all[0].cmd.Process.Signal(unix.SIGINT) // it has ended if the others called node 1 lost
		for i, j := range all {
			if code, out := j.end(); code != 75 && long < lost {
				t.Errorf("node %d: held up for %v, exit code %d, output\n%s", i, long, code, out)
			}
		}
		if long < lost {
			return
		}
	}
	t.Log("this process was held up itself, each time")
}

func TestInterruptOneNode(t *testing.T) {
	t.Parallel()
	all := nodes(t, "127.0.0.1:0", 2, "RANKS", "wait")
	all[0].numbers("ready", 1)
	all[1].numbers("ready", 1)
	if err := all[1].cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		if code, out := j.end(); code != 75 || !strings.Contains(out, "] stopping\n") {
			t.Errorf("exit code %d, output\n%s", code, out)
		}
	}
}

func TestRestartOnSeveralNodes(t *testing.T) {
	t.Parallel()
	for _, j := range nodes(t, "127.0.0.1:0", 2, "--max-restarts", "1", "RANKS", "restart", "1") {
		code, out := j.end()
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		want(t, out, "restart 1: rank 1 (", "done in epoch 1")
	}
}

// againMode waits for its end in epoch 0 and ends well in another.
func againMode(ctx context.Context, g *rendezvous.Group, _ []string) (int, error) {
	if g.Restart() == 0 {
		return waitMode(ctx, g, nil)
	}
	err := g.Barrier(ctx, "again")
	fmt.Printf("again in epoch %d\n", g.Restart())
	return 0, errors.Join(err, g.Close())
}

// A launcher that is killed is started again at once, before anybody knows of
// its end: it waits and takes the place. One that replaces nobody is refused.
func TestReplacedAtOnce(t *testing.T) {
	t.Parallel()
	all := nodes(t, "127.0.0.1:0", 2, "--max-restarts", "1", "RANKS", "again")
	for _, j := range all {
		j.numbers("ready", 1)
	}
	join := []string{"--nnodes", "2", "--join", all[0].endpoint(), "--rdzv-timeout", "20s", "RANKS", "again"}
	if code, out := start(t, secret, slices.Clone(join)...).end(); code != 1 || !strings.Contains(out, "the coordinator refuses this node: the job is already complete and running") {
		t.Errorf("one too many ended with %d:\n%s", code, out)
	}
	next := start(t, secret, slices.Clone(join)...)
	time.Sleep(300 * time.Millisecond) // it has probably asked already
	if err := all[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*job{all[0], next} {
		if code, out := j.end(); code != 0 || !strings.Contains(out, "again in epoch 1") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	}
}

// A launcher with another key, or of another job, gets nothing; the job goes
// on to wait for the right one.
func TestStrangersAreKeptOut(t *testing.T) {
	for name, stranger := range map[string]struct{ key, id, says string }{
		"key": {"EBTRAIN_KEY=another secret, long enough", "exp", "but the key differs: give EBTRAIN_KEY the same value on all nodes"},
		"job": {secret[0], "another", "but the name of the job differs: give the same --rdzv-id on all nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-id", "exp", "RANKS", "gather")
			at := first.endpoint()
			code, out := start(t, []string{stranger.key}, "--nnodes", "2", "--join", at, "--rdzv-id", stranger.id, "RANKS", "gather").end()
			if code != 1 {
				t.Errorf("the stranger's exit code is %d, want 1", code)
			}
			want(t, out, "ddplaunch: node 0 answered at "+at+", "+stranger.says+"\n")
			friend := start(t, secret, "--nnodes", "2", "--join", at, "--rdzv-id", "exp", "RANKS", "gather")
			for _, j := range []*job{first, friend} {
				if code, out := j.end(); code != 0 || !strings.Contains(out, "first: [first-of-0 first-of-1]") {
					t.Errorf("exit code %d, output\n%s", code, out)
				}
			}
			want(t, first.output(), "ddplaunch: warning: a launcher of another job was refused: ")
		})
	}
}

// A world smaller than asked for is never formed.
func TestMissingNode(t *testing.T) {
	t.Parallel()
	code, out := start(t, secret, "--nnodes", "3", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-timeout", "2s", "RANKS", "gather").end()
	if code != 1 || strings.Contains(out, "first") {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "1 of 3 nodes joined within 2s (", "missing: nodes 1-2")
}

func TestAddressOfAnotherMachine(t *testing.T) {
	code, out := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "192.0.2.7:29400", "true").end()
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want(t, out, "ddplaunch: not an address of this machine, which is node 0: 192.0.2.7 ([192.0.2.7]): give one that is, or start node 0 there\n")
}

func TestShortKey(t *testing.T) {
	code, out := start(t, []string{"EBTRAIN_KEY=short"}, "--nnodes", "2", "--node-rank", "0", "true").end()
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	want(t, out, "EBTRAIN_KEY has 5 characters, want at least 16")
}

// Who waits for node 0 can be stopped.
func TestStoppedBeforeJoining(t *testing.T) {
	t.Parallel()
	j := start(t, secret, "--nnodes", "2", "--join", "127.0.0.1:1", "RANKS", "gather")
	for deadline := time.Now().Add(patience); !catches(j.cmd.Process.Pid, unix.SIGUSR1) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // before that it would kill
	}
	ended := false
	for deadline := time.Now().Add(patience); !ended && time.Now().Before(deadline); {
		_ = j.cmd.Process.Signal(unix.SIGUSR1) // one that comes before it is handled has no effect; it may have ended
		select {
		case <-j.done:
			ended = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	code, out := j.end()
	if code != 128+int(unix.SIGUSR1) {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "ddplaunch: stopped by SIGUSR1: the ranks were not started\n")
}

// catches reports whether a process does not leave a signal to the kernel, and ignores whether
// that drops it.
func catches(pid int, s unix.Signal) bool { return disposes(pid, "SigCgt:", s) }
func ignores(pid int, s unix.Signal) bool { return disposes(pid, "SigIgn:", s) }

func disposes(pid int, how string, s unix.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, text, _ := strings.Cut(string(status), how)
	text, _, _ = strings.Cut(text, "\n")
	signals, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
	return err == nil && signals&(1<<(s-1)) != 0
}

// Node 0 dies while others wait for the rest: they end at once.
func TestNodeZeroDiesBeforeTheStart(t *testing.T) {
	t.Parallel()
	first := start(t, secret, "--nnodes", "3", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "RANKS", "gather")
	at := first.endpoint()
	second := start(t, secret, "--nnodes", "3", "--join", at, "-v", "RANKS", "gather")
	second.awaits("register e0")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	code, out := second.end()
	if took := time.Since(began); code != 1 || took > endsWithin {
		t.Errorf("exit code %d after %v", code, took)
	}
	want(t, out, "node 0 at "+at+" is gone before all nodes had joined")
}

// Messages near the limit of an exchange pass.
func TestBigExchange(t *testing.T) {
	t.Parallel()
	for _, j := range nodes(t, "127.0.0.1:0", 2, "-nproc", "4", "RANKS", "gather", "big") {
		if code, out := j.end(); code != 0 || !strings.Contains(out, fmt.Sprintf("sizes 8 0 %d", 1<<20)) {
			t.Errorf("exit code %d, output\n%s", code, out)
		}
	}
}

// A node that runs something else is refused at once, and the job waits for the
// right one.
func TestAnotherCommand(t *testing.T) {
	t.Parallel()
	first := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "RANKS", "gather", "small")
	at := first.endpoint()
	for says, args := range map[string][]string{
		`of ddplaunch.test it has "large", node 0 has "small": give the same command on all nodes`: {"RANKS", "gather", "large"},
		"it runs true, node 0 runs ddplaunch.test":                                                 {"true"},
	} {
		code, out := start(t, secret, append([]string{"--nnodes", "2", "--join", at}, args...)...).end()
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		want(t, out, "ddplaunch: the coordinator refuses this node: "+says+"\n")
		first.awaits("was refused: " + says + "\n") // which may write later than the other ends
	}
	friend := start(t, secret, "--nnodes", "2", "--join", at, "RANKS", "gather", "small")
	for _, j := range []*job{first, friend} {
		if code, out := j.end(); code != 0 {
			t.Errorf("exit code %d, output\n%s", code, out)
		}
	}
}

// A host that SLURM has named is missed by its name.
func TestMissingHost(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(host, ".")
	environ := append([]string{"SLURM_STEP_NODELIST=" + first + ",gpu[08-09]"}, secret...)
	_, out := start(t, environ, "--nnodes", "3", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-timeout", "2s", "RANKS", "gather").end()
	want(t, out, "1 of 3 nodes joined within 2s ("+host+"); missing: gpu08, gpu09\n")
}
