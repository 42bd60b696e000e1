package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
)

// endsWithin is less than any time-out of a launcher that is at its default (grace,
// stuck ranks, joining), and more than any load of the machine should make of the two
// seconds that are promised: those chaos measures.
const endsWithin = 20 * time.Second

func TestKilledRank(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 4} {
		for _, mode := range []string{"wait", "deaf"} {
			t.Run(fmt.Sprintf("%s/%d", mode, n), func(t *testing.T) {
				t.Parallel()
				j := start(t, nil, "-nproc", fmt.Sprint(n), "RANKS", mode)
				pids := j.numbers("ready", n)
				began := time.Now()
				if err := unix.Kill(pids[1], unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				code, out := j.end()
				if took := time.Since(began); took > endsWithin {
					t.Errorf("the job ended after %v", took)
				} else {
					t.Logf("the job ended after %v", took)
				}
				if code != 128+9 {
					t.Errorf("exit code %d, want 137", code)
				}
				line := fmt.Sprintf("rank 1 (%s, pid %d): killed by SIGKILL during all-reduce generator/bucket 3, seq 8812, step 41\n", host, pids[1])
				want(t, out, "ddplaunch: "+line)
				if mode == "wait" {
					each(t, out, map[int][]int{2: {0}, 4: {0, 2, 3}}[n], strings.TrimSuffix(line, "\n"))
				}
				gone(t, slices.Collect(maps.Values(pids))...)
			})
		}
	}
}

func TestInterrupt(t *testing.T) {
	tests := []struct {
		name, mode string
		flags      []string
		signals    []unix.Signal
		code       int
		says       string
	}{
		{"all stop cleanly", "wait", nil, []unix.Signal{unix.SIGINT}, 75, "] stopping\n"},
		{"SLURM's warning", "wait", nil, []unix.Signal{unix.SIGUSR1}, 75, "] stopping\n"},
		{"grace runs out", "deaf", []string{"--grace", "0.3"}, []unix.Signal{unix.SIGTERM}, 143, "ddplaunch: killed: still running 300ms after SIGTERM: rank 0, 1\n"},
		{"timeout(1) sends each signal twice", "wait", nil, []unix.Signal{unix.SIGTERM, unix.SIGTERM}, 75, "] stopping\n"},
		{"second signal kills", "deaf", []string{"--grace", "1m"}, []unix.Signal{unix.SIGINT, unix.SIGINT}, 130, "ddplaunch: killed by a second SIGINT\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for inTime := false; !inTime; { // or two signals that were to be one may have been two
				j := start(t, nil, append(append([]string{"-nproc", "2"}, tt.flags...), "RANKS", tt.mode)...)
				pids := j.numbers("ready", 2)
				begun := time.Now()
				for i, s := range tt.signals {
					if i > 0 {
						time.Sleep(time.Millisecond)
					}
					if i > 0 && tt.mode == "deaf" {
						j.awaits("asked to stop")
						time.Sleep(cliflag.OneRequest)
					}
					if err := j.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) { // the second was late
						t.Fatal(err)
					}
				}
				inTime = tt.mode == "deaf" || time.Since(begun) < cliflag.OneRequest/4
				code, out := j.end()
				if inTime && code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				if inTime {
					want(t, out, tt.says)
				}
				gone(t, pids[0], pids[1])
			}
		})
	}
}

// A signal to one rank becomes a request to all.
func TestSignalToOneRank(t *testing.T) {
	j := start(t, nil, "-nproc", "2", "RANKS", "wait")
	pids := j.numbers("ready", 2)
	if err := unix.Kill(pids[1], unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, out := j.end()
	if code != 75 {
		t.Errorf("exit code %d, want 75", code)
	}
	each(t, out, []int{0, 1}, "stopping")
}

// Programs that know nothing of this project get the signal itself.
func TestInterruptStranger(t *testing.T) {
	t.Parallel()
	j := start(t, nil, "-nproc", "2", "sh", "-c", `trap 'echo caught; exit 0' INT; echo ready $$; while :; do sleep 0.05; done`)
	j.numbers("ready", 2)
	if err := j.cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, out := j.end()
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	each(t, out, []int{0, 1}, "caught")
}

// Nothing survives a launcher that is killed: not the ranks, which cannot
// catch it, nor what they have started.
func TestLauncherKilled(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGKILL, unix.SIGABRT} {
		t.Run(unix.SignalName(s), func(t *testing.T) {
			t.Parallel()
			j := start(t, nil, "-nproc", "2", "RANKS", "family")
			ranks, children := j.numbers("ready", 2), j.numbers("child", 2)
			if err := j.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			j.end()
			for _, pid := range []int{ranks[0], ranks[1], children[0], children[1]} {
				dead(t, pid)
			}
		})
	}
}

// dead waits until a process runs no more. Where process 1 reaps nobody, the
// orphans of a killed launcher stay zombies; that is not the launcher's doing.
func dead(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runs(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// runs says whether a process is there, and no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestChildrenEndWithTheirRank(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"end", "kill"} {
		args := []string{"-nproc", "2", "RANKS", "family"}
		if how == "end" {
			args = append(args, how)
		}
		j := start(t, nil, args...)
		children := j.numbers("child", 2)
		if how == "kill" {
			if err := unix.Kill(j.numbers("ready", 2)[0], unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		j.end()
		gone(t, children[0], children[1])
	}
}

// What a rank has started ends with the job even if it has left its rank's group, as
// daemons do, and whoever it was started by; what is no rank's by its environment does not.
func TestDaemonsEndWithTheirJob(t *testing.T) {
	for _, how := range []string{"end", "kill a rank", "restart", "kill the launcher"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			args, end := []string{"-nproc", "2", "RANKS", "daemon"}, t.TempDir()+"/end"
			switch how {
			case "end":
				args = append(args, end)
			case "restart":
				args = append([]string{"--max-restarts", "1"}, args...)
			}
			j := start(t, nil, args...)
			ranks, children, parents, strangers := j.numbers("ready", 2), j.numbers("child", 2), j.numbers("parent", 2), j.numbers("stranger", 2)
			defer func() {
				for _, pid := range strangers {
					if err := unix.Kill(pid, unix.SIGKILL); err != nil {
						t.Errorf("process %d, which nobody was to end: %v", pid, err)
					}
				}
			}()
			for r := range 2 { // before that a stranger has the environment of its rank
				awaitProgram(t, children[r], "sleep")
				awaitProgram(t, strangers[r], "sleep")
			}
			switch how {
			case "end":
				if err := os.WriteFile(end, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			case "kill a rank", "restart":
				if err := unix.Kill(ranks[0], unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			case "kill the launcher":
				if err := j.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			_, out := j.end()
			for r := range 2 {
				if how != "kill the launcher" {
					gone(t, children[r], parents[r])
					want(t, out, fmt.Sprintf("sleep (pid %d)", children[r]), "start what is to live on with env -u EBTRAIN_GROUP\n")
				}
				dead(t, children[r])
				dead(t, parents[r])
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"all well", []string{"true"}, 0, ""},
		{"all fail alike", []string{"sh", "-c", "exit 3"}, 3, "exit status 3"},
		{"one fails", []string{"sh", "-c", "[ $RANK = 0 ] && exec sleep 20; exit 5"}, 5, "rank 1 ("},
		{"first of two", []string{"sh", "-c", "[ $RANK = 0 ] && trap 'exit 6' TERM && while :; do sleep 0.05; done; exit 5"}, 5, "rank 1 ("},
		{"signal", []string{"sh", "-c", "[ $RANK = 0 ] && exec sleep 20; kill -SEGV $$"}, 139, "killed by SIGSEGV"},
		{"signal without a name", []string{"sh", "-c", "[ $RANK = 0 ] && exec sleep 20; kill -40 $$"}, 168, "killed by signal 40\n"},
		{"stopped cleanly", []string{"sh", "-c", "exit 75"}, 75, ""},
		{"one stopped cleanly", []string{"sh", "-c", "[ $RANK = 0 ] && exit 75; sleep 0.3"}, 75, ""},
		{"joined rank fails", []string{"RANKS", "exit", "1", "9"}, 9, "exit status 9 during all-reduce"},
		{"raised", []string{"RANKS", "raise", "shard 3:\n checksum is wrong"}, 7, "): shard 3:; checksum is wrong\n"},
		{"different exchanges", []string{"RANKS", "disagree"}, 1, `is in exchange "`},
		{"left early", []string{"RANKS", "leave"}, 1, `left the group while rank 0 waits for it in exchange "barrier all"`},
		{"exchange abandoned", []string{"RANKS", "timeout"}, 1, `exchange "late": rank 1 did not come`},
		{"not a program", []string{os.DevNull}, 2, "is not executable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out := run1(t, append([]string{"-nproc", "2"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d; output\n%s", code, tt.code, out)
			}
			want(t, out, tt.says)
			if tt.says == "" && out != "" {
				t.Errorf("output %q, want none", out)
			}
		})
	}
}

func TestUnstartableProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(path, []byte("\x7fELF nonsense"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, out := run1(t, "-nproc", "2", path)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want(t, out, "exec format error")
}

// Where the launcher may not open enough for all ranks, it says which does not start, and
// what to do.
func TestFewDescriptors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []string{"20", "60"} {
		cmd := exec.Command("sh", "-c", "ulimit -n "+limit+`; exec "$0" "$@"`, self, "-nproc", "12", "sleep", "20")
		cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
		out, err := cmd.CombinedOutput()
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 {
			t.Errorf("limit %s: %v", limit, err)
		}
		want(t, string(out), "too many open files: allow ", " more of them (ulimit -n)\n") // ddplaunch, or this program: whatever is opened last
	}
}

func TestExchange(t *testing.T) {
	code, out := run1(t, "-nproc", "3", "RANKS", "gather", "big")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	ranks := []int{0, 1, 2}
	each(t, out, ranks, "first: [first-of-0 first-of-1 first-of-2]")
	each(t, out, ranks, "second: [second-of-0 second-of-1 second-of-2]")
	each(t, out, ranks, "job job-")
	want(t, out, "[1] sizes 3 0 1048576, hosts 3, one host true, local 1 of 3\n", "(32)\n")
}

// Two jobs at the same time, with the same id, do not meet: each has a name of its own, and
// so other keys for its ranks. That those are secret is shown by TestHello of rendezvous.
func TestTwoJobs(t *testing.T) {
	jobs := []*job{start(t, nil, "-nproc", "2", "--rdzv-id", "x/y", "RANKS", "gather"), start(t, nil, "-nproc", "2", "--rdzv-id", "x/y", "RANKS", "gather")}
	names := map[string]bool{}
	for _, j := range jobs {
		code, out := j.end()
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		_, line, _ := strings.Cut(out, "] job x-y-")
		line, _, _ = strings.Cut(line, "\n")
		if strings.Count(out, line) > 2 {
			t.Errorf("output\n%s", out)
		}
		name, key, _ := strings.Cut(line, " key ")
		names[name], names[key] = true, true
	}
	if len(names) != 4 {
		t.Errorf("names and keys %v are not different", names)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	code, out := run1(t, "-nproc", "2", "--max-restarts", "2", "RANKS", "restart", "2")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "ddplaunch: restart 1: rank 1 (", "ddplaunch: restart 2: rank 1 (", "-e2\n")
	each(t, out, []int{0, 1}, "done in epoch 2, job job-")
	if code, _ := run1(t, "-nproc", "2", "--max-restarts", "1", "RANKS", "restart", "2"); code != 137 {
		t.Errorf("exit code %d when the restarts are used up, want 137", code)
	}
}

// A process started by a rank has the rank's environment but is not the rank.
func TestChildOfARankIsRefused(t *testing.T) {
	code, out := run1(t, "-nproc", "2", "RANKS", "rejoin")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "child said EBTRAIN_CONTROL_FD=3 is not the socket of a launcher")
}
