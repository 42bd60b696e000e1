package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/supervise"
)

// Whoever reads the output stops reading, with ranks that write without end:
// nothing that then happens waits for him.
func TestReaderStalled(t *testing.T) {
	const flood = `trap '' TERM; echo $$ > "$0"/$RANK; while :; do echo "a line of output that nobody reads"; done`
	for name, tt := range map[string]struct {
		rank    unix.Signal // sent to rank 1
		self    unix.Signal // sent to the launcher, again and again
		verbose string
		code    int
	}{
		"a rank is killed":      {rank: unix.SIGKILL, verbose: "--grace=1m", code: 137},
		"the log is stuck, too": {rank: unix.SIGKILL, verbose: "-v", code: 137},
		"SIGTERM twice":         {self: unix.SIGTERM, verbose: "--grace=2m", code: 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }() // not before the end
			dir := t.TempDir()
			cmd := exec.Command(self, "-nproc", "2", tt.verbose, "sh", "-c", flood, dir)
			cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
			cmd.Stdout, cmd.Stderr = w, w
			if err := errors.Join(cmd.Start(), w.Close()); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }() // if it has not ended
			pids := []int{pidIn(t, dir+"/0"), pidIn(t, dir+"/1")}
			awaitFull(t, r)
			if tt.rank != 0 {
				if err := unix.Kill(pids[1], tt.rank); err != nil {
					t.Fatal(err)
				}
			}
			for late, ended := time.After(patience), false; !ended; {
				if tt.self != 0 && runs(pids[0]) { // else it has taken the second one, and ends
					if err := cmd.Process.Signal(tt.self); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case err := <-done:
					if code := cmd.ProcessState.ExitCode(); code != tt.code {
						t.Errorf("exit code %d (%v), want %d", code, err, tt.code)
					}
					ended = true
				case <-late:
					t.Fatal("the launcher still waits for its reader")
				case <-time.After(3 * cliflag.OneRequest): // sooner two signals would be one, and to a launcher that stands still they are
				}
			}
			gone(t, pids...)
		})
	}
}

// The disk of the logs, and of what says why the job has failed, does not answer, which a pipe
// shows that nobody reads: the launcher ends all the same.
func TestLogStalled(t *testing.T) {
	for name, opened := range map[string]bool{"open": false, "write": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range []string{"rank-0.out", "rank-1.out", "mine.json"} {
				if err := unix.Mkfifo(dir+"/"+file, 0o600); err != nil {
					t.Fatal(err)
				}
				if opened {
					r, err := os.OpenFile(dir+"/"+file, os.O_RDWR, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = r.Close() }() // not before the end
				}
			}
			const flood = `i=0; while [ $i -lt 50000 ]; do echo "a line that is not kept"; i=$((i+1)); done; echo ready $$ >&2; exec sleep 60`
			j := start(t, []string{supervise.ErrorFileVar + "=" + dir + "/mine.json"}, "-nproc", "2", "--log-dir", dir, "-t", "3", "-r", "1", "sh", "-c", flood)
			pids := j.numbers("ready", 2)
			if err := unix.Kill(pids[1], unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			code, out := j.end()
			if code != 137 {
				t.Errorf("exit code %d, want 137", code)
			}
			if told := strings.Contains(out, "ddplaunch: "+supervise.ErrorFileVar+": the disk does not answer\n"); told == opened {
				t.Errorf("of the file of the reason: %v", told)
			}
			want(t, out, "ddplaunch: log of rank 0: the disk does not answer: its last lines may be lost\n", "pid "+strconv.Itoa(pids[1])+"): killed by SIGKILL\n")
		})
	}
}

// pidIn waits for a file with a number.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(file)
		if n, nerr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && nerr == nil {
			return n
		}
	}
	t.Fatal("no number in " + file)
	return 0
}

// awaitFull waits until nothing more fits into a pipe that nobody reads.
func awaitFull(t *testing.T, r *os.File) {
	t.Helper()
	last := -1
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(fmt.Errorf("what waits in a pipe: %w", err))
		}
		if n > 32<<10 && n == last {
			return
		}
		last = n
	}
	t.Fatal("the pipe does not fill")
}
