package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var secret = []string{"EBTRAIN_KEY=a secret of the test, long enough"}

var joinHint = regexp.MustCompile(`--join (\S+) `)

// nodes starts node 0 on address and n-1 nodes that join it.
func nodes(t *testing.T, address string, n int, args ...string) []*job {
	t.Helper()
	first := start(t, secret, append([]string{"--nnodes", fmt.Sprint(n), "--node-rank", "0", "--rdzv-endpoint", address}, slices.Clone(args)...)...)
	all := []*job{first}
	for i := 1; i < n; i++ {
		all = append(all, start(t, secret, append([]string{"--nnodes", fmt.Sprint(n), "--join", first.endpoint()}, slices.Clone(args)...)...))
	}
	return all
}

// endpoint is where others join this job.
func (j *job) endpoint() string {
	j.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
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

// A launcher stands still, as its whole host might: the others know that after a
// second or so. Its ranks end, too, and when it wakes up it ends.
func TestFrozenLauncher(t *testing.T) {
	for frozen, says := range map[int]string{
		0: "): lost with rank 0 and the coordinator: its host is dead or unreachable\n",
		1: "): lost with rank 1: its host is dead or unreachable\n",
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
				if code != 1 || time.Since(began) > 2*endsWithin {
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

// A launcher with another key, or of another job, gets nothing; the job goes
// on to wait for the right one.
func TestStrangersAreKeptOut(t *testing.T) {
	for name, stranger := range map[string]struct{ key, id string }{
		"key": {"EBTRAIN_KEY=another secret, long enough", "exp"},
		"job": {secret[0], "another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-id", "exp", "RANKS", "gather")
			at := first.endpoint()
			code, out := start(t, []string{stranger.key}, "--nnodes", "2", "--join", at, "--rdzv-id", stranger.id, "--rdzv-timeout", "500ms", "RANKS", "gather").end()
			if code != 1 {
				t.Errorf("the stranger's exit code is %d, want 1", code)
			}
			want(t, out, "no coordinator answered at "+at+" within", "EBTRAIN_KEY")
			friend := start(t, secret, "--nnodes", "2", "--join", at, "--rdzv-id", "exp", "RANKS", "gather")
			for _, j := range []*job{first, friend} {
				if code, out := j.end(); code != 0 || !strings.Contains(out, "first: [first-of-0 first-of-1]") {
					t.Errorf("exit code %d, output\n%s", code, out)
				}
			}
		})
	}
}

// A world smaller than asked for is never formed.
func TestMissingNode(t *testing.T) {
	t.Parallel()
	code, out := start(t, secret, "--nnodes", "3", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-timeout", "300ms", "RANKS", "gather").end()
	if code != 1 || strings.Contains(out, "first") {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "1 of 3 nodes joined within 300ms (", "missing: node 1, node 2")
}

func TestAddressOfAnotherMachine(t *testing.T) {
	code, out := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "192.0.2.7:29400", "true").end()
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want(t, out, "192.0.2.7 (192.0.2.7) is not an address of this machine, which is node 0")
}

func TestShortKey(t *testing.T) {
	code, out := start(t, []string{"EBTRAIN_KEY=short"}, "--nnodes", "2", "--node-rank", "0", "true").end()
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	want(t, out, "EBTRAIN_KEY has 5 characters, want at least 16")
}
