// Package child runs a program as a child process that gives way to others: at
// a lower priority, in a session of its own (Ctrl-C at the terminal reaches the
// parent alone), asked to stop when the parent's context ends or the parent dies. It
// says what the child cost and the last line that it printed.
//
// Run may be called from any goroutine; each call is one child.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is a program to be run.
type Command struct {
	Path   string
	Args   []string
	Env    []string
	Nice   int       // added to the parent's niceness
	Stdout io.Writer // nil: into Log
	Log    *os.File  // what the child prints on stderr
	Kill   <-chan struct{}
}

// Ended is how a child ended.
type Ended struct {
	Code    int           // exit code; 128 and the signal's number if one killed it
	CPU     time.Duration // of the child and of those that it waited for
	Wall    time.Duration
	Started time.Time
}

func (e Ended) String() string {
	if e.Code > 128 {
		signal := syscall.Signal(e.Code - 128)
		return "killed by " + cmp.Or(unix.SignalName(signal), signal.String())
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Run runs a child to its end. When ctx ends the child gets SIGINT, when Kill is
// closed SIGKILL; either way Run waits for it. The error is one of starting or
// reading; how the child ended is no error.
func Run(ctx context.Context, c Command) (Ended, error) {
	type result struct {
		e   Ended
		err error
	}
	done := make(chan result, 1)
	go func() {
		// Niceness and the signal at a parent's death are of the thread that
		// starts the child. It is not unlocked: it ends with this goroutine.
		runtime.LockOSThread()
		e, err := run(ctx, c)
		done <- result{e, err}
	}()
	r := <-done
	return r.e, r.err
}

func run(ctx context.Context, c Command) (Ended, error) {
	nice, err := lower(c.Nice)
	if err != nil {
		return Ended{}, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, c.Stdout, c.Log
	if c.Stdout == nil {
		cmd.Stdout = c.Log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	e := Ended{Started: time.Now()}
	if err := cmd.Start(); err != nil {
		return Ended{}, err
	}
	var unsaid error
	if c.Nice > 0 {
		// Where it cannot, the child is nice within its session only.
		if err := lowerSession(cmd.Process.Pid, nice); err != nil {
			_, unsaid = fmt.Fprintf(c.Log, "this may not give way to other sessions: %v\n", err)
		}
	}
	over := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(ctx, c.Kill, over, cmd.Process)
	}()
	err = cmd.Wait()
	close(over)
	<-stopped
	e.Wall = time.Since(e.Started)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return e, err
	}
	st := cmd.ProcessState
	e.CPU, e.Code = st.UserTime()+st.SystemTime(), st.ExitCode()
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
	}
	return e, unsaid
}

// stop signals the child when it is to end, until it is over. A signal that does
// not reach it comes too late.
func stop(ctx context.Context, kill, over <-chan struct{}, p *os.Process) {
	asked := ctx.Done()
	for {
		select {
		case <-over:
			return
		case <-asked:
			_ = p.Signal(os.Interrupt)
			asked = nil
		case <-kill:
			_ = p.Kill()
			kill = nil
		}
	}
}

// LastLine is the last line of a file from an offset that is not empty.
func LastLine(file string, from int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, from, 1<<30))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	text := strings.TrimRight(string(b), " \r\n")
	return strings.TrimSpace(text[strings.LastIndexAny(text, "\r\n")+1:]), nil
}
