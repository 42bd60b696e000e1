package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner starts processes from one operating-system thread that lives until
// Close. Linux sends PDEATHSIG when the thread that forked ends, not the
// process, so ranks must not be started from a thread of the Go scheduler.
type spawner struct {
	calls chan func()
	bound bool        // the thread runs on a rank's processors; only it looks here
	all   unix.CPUSet // where it ran before that
}

func newSpawner() *spawner {
	s := &spawner{calls: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range s.calls {
			undisturbed(f)
		}
	}()
	return s
}

// undisturbed does f, which starts a process, without a collection of garbage. The
// thread that starts one stands still in the kernel until the new process has been
// given a processor, and Go does not know: a collection, which stops the world,
// would have all of the launcher wait as long. Among many processes that is long
// enough for other launchers to think it dead.
func undisturbed(f func()) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f()
}

// start starts a process, on the processors cpus if they are not nil.
func (s *spawner) start(cmd *exec.Cmd, cpus *unix.CPUSet) error {
	result := make(chan error)
	s.calls <- func() {
		err := s.move(cpus)
		if err == nil {
			err = cmd.Start()
		}
		result <- err
	}
	return <-result
}

// move has the thread run on cpus, as what it starts then does, or where it may anyway.
func (s *spawner) move(cpus *unix.CPUSet) error {
	if cpus == nil && !s.bound {
		return nil
	}
	if !s.bound {
		if err := unix.SchedGetaffinity(0, &s.all); err != nil {
			return fmt.Errorf("which processors ranks may use: %w", err)
		}
	}
	if s.bound = cpus != nil; !s.bound {
		cpus = &s.all
	}
	if err := unix.SchedSetaffinity(0, cpus); err != nil {
		return fmt.Errorf("bind a rank to its processors: %w", err)
	}
	return nil
}

// Close ends the thread: whatever it started and has not ended is killed.
func (s *spawner) Close() { close(s.calls) }

// groupAttr makes a process lead its own group and die with the launcher.
func groupAttr() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

// ended says how a process ended.
type ended struct {
	code   int
	signal unix.Signal // 0 if it was not killed
}

// await blocks until the leader of a group has ended and leaves it a zombie,
// so that its number cannot be used again before killGroup.
func await(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// killGroup kills what is left of the group of an ended leader and reaps it.
func killGroup(cmd *exec.Cmd) (ended, error) {
	pid := cmd.Process.Pid
	signalGroup(pid, unix.SIGKILL)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return ended{}, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	// Orphans of the group become our children (see adopt) or init's.
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_ = unix.Waitid(unix.P_PGID, pid, nil, unix.WEXITED|unix.WNOHANG, nil) // none of ours is fine
		if errors.Is(unix.Kill(-pid, 0), unix.ESRCH) {
			break
		}
	}
	st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus) // not unix.WaitStatus, another type
	if ok && st.Signaled() {
		return ended{signal: st.Signal()}, nil
	}
	return ended{code: cmd.ProcessState.ExitCode()}, nil
}

// signalGroup signals every process of a group; a group that is gone is fine.
func signalGroup(pid int, s unix.Signal) { _ = unix.Kill(-pid, s) }

// adopt makes the orphans among this process's descendants its own children,
// so that they can be reaped where process 1 does not do it (containers).
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return nil
}

// socketPair makes a connected pair of stream sockets, both closed on exec.
func socketPair() (mine, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a control channel: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}
