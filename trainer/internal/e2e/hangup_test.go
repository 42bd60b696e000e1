package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what a user sees, and what a program has.
func terminal(t *testing.T, columns int) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	control(t, user, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	resize(t, user, columns)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return user, program
}

// resize makes the terminal so wide; the program is told by SIGWINCH.
func resize(t *testing.T, user *os.File, columns int) {
	t.Helper()
	control(t, user, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)})
	})
}

// control calls f with the descriptor of a file that stays non-blocking, so
// that Close ends a Read.
func control(t *testing.T, file *os.File, f func(fd int) error) {
	t.Helper()
	c, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// onTerminal starts a program as the leader of a session on a terminal, which
// the test closes.
func (s *site) onTerminal(columns int, args ...string) (cmd *exec.Cmd, user *os.File) {
	s.t.Helper()
	user, program := terminal(s.t, columns)
	cmd = exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(append(clean(os.Environ()), "TERM=xterm"), s.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		s.t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	s.t.Cleanup(func() { kill.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() }) // most have ended
	return cmd, user
}

// A reader that goes away (train | head) stops a run of one rank likewise.
func TestReaderGone(t *testing.T) {
	s := newSite(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := tiny("a", "--steps", "1000000", "--ckpt-every", "0", "--print-every", "1")
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	var said strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, append(clean(os.Environ()), s.env...), w, &said
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { kill.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() }) // most have ended
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 75 || !strings.Contains(said.String(), "train: stopped before the end; the same command with --resume goes on") {
		t.Errorf("%v, want exit 75; it says %q", cmd.ProcessState, &said)
	}
	n := len(s.losses("a"))
	if _, err := os.Stat(s.path("a", "ckpt", fmt.Sprintf("step-%08d", n), "state.json")); err != nil {
		t.Errorf("no checkpoint of the %d steps: %v", n, err)
	}
}

// A terminal that goes away, or a SIGHUP from elsewhere, stops a run as SIGTERM
// does: with a checkpoint.
func TestHangup(t *testing.T) {
	long(t)
	heard := make(chan os.Signal, 1) // what is ignored here, as SIGHUP under nohup, is by a child; what is heard is not
	signal.Notify(heard, unix.SIGHUP)
	defer signal.Stop(heard)
	for _, ranks := range []int{0, 2} {
		for _, how := range []string{"terminal closed", "signals"} {
			t.Run(fmt.Sprintf("%s, %d ranks", how, ranks), func(t *testing.T) {
				s := newSite(t)
				args := on(ranks, tiny("a", "--steps", "1000000", "--ckpt-every", "0"))
				cmd, user := s.onTerminal(80, args...)
				drained := make(chan struct{})
				go func() {
					defer close(drained)
					for b := make([]byte, 4096); ; {
						if _, err := user.Read(b); err != nil {
							return
						}
					}
				}()
				if !s.comesTo("a", 3) {
					t.Fatal("no steps")
				}
				if how == "signals" {
					for range 2 { // one of the kernel, one of the shell
						if err := cmd.Process.Signal(unix.SIGHUP); err != nil {
							t.Fatal(err)
						}
					}
				} else if err := user.Close(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // the code is looked at
				_ = user.Close()
				<-drained
				if code := cmd.ProcessState.ExitCode(); code != 75 {
					t.Errorf("%v, want exit 75", cmd.ProcessState)
				}
				n := len(s.losses("a"))
				if _, err := os.Stat(s.path("a", "ckpt", fmt.Sprintf("step-%08d", n), "state.json")); err != nil {
					t.Errorf("no checkpoint of the %d steps: %v", n, err)
				}
			})
		}
	}
}

// TestStoppedAsItStarts asks a job to stop when it has only just started its ranks, as a
// scheduler may: it stops in good order, so that it is put back into the queue.
func TestStoppedAsItStarts(t *testing.T) {
	long(t)
	for _, sig := range []syscall.Signal{unix.SIGUSR1, unix.SIGTERM, unix.SIGINT} {
		s := newSite(t)
		r := s.start(on(4, tiny("a", "--steps", "1000000"))...)
		for begun := time.Now(); len(r.children()) == 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience/2 {
				t.Fatal("no ranks")
			}
		}
		r.signal(sig)
		if e := r.wait(); e.code != 75 || !strings.Contains(e.stderr, "stopped before the end") {
			t.Errorf("%v: want exit 75, %v", sig, e)
		}
	}
}
