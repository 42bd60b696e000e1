package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// supervise has the checks done by a process of its own, and by another one from the
// next check on where one fails, hangs or crashes: after a fault of the GPU every later
// call of a process fails, too, and a kernel that never ends lets nobody go. What the
// processes put out is kept in log.txt.
func supervise(ctx context.Context, o *options, r *report, start func(from int) (*exec.Cmd, error)) (err error) {
	runtime.LockOSThread() // children are told when the thread ends that started them
	defer runtime.UnlockOSThread()
	log, err := os.OpenFile(filepath.Join(o.out, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for {
		cmd, err := start(len(r.Checks))
		if err != nil {
			return err
		}
		before := len(r.Checks)
		over, err := (&watch{o: o, r: r, log: log}).process(ctx, cmd)
		if over || err != nil || ctx.Err() != nil {
			return err
		}
		if len(r.Checks) == before {
			return errors.New("a process that was to do checks ended before the first: see log.txt")
		}
	}
}

// message is what the process of checks tells: that a check begins, how it went, or that
// there are no more.
type message struct {
	Began *finding `json:"began,omitempty"`
	Ended *finding `json:"ended,omitempty"`
	Over  bool     `json:"over,omitempty"`
}

// messages is the file descriptor on which it does.
const messages = 3

// watch follows one process.
type watch struct {
	o    *options
	r    *report
	log  io.Writer
	said tail  // since the check under way began
	told bool  // the check under way has failed
	err  error // of writing what was found
}

// process runs cmd until it has done all checks (over), or ends otherwise.
func (w *watch) process(ctx context.Context, cmd *exec.Cmd) (over bool, err error) {
	in, out, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer in.Close() //nolint:errcheck // read only
	both := io.MultiWriter(w.log, &w.said)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = both, both, []*os.File{out}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = errors.Join(cmd.Start(), out.Close())
	if cmd.Process == nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		kill(cmd) // ranks that it has left; with them the last end of the pipe is closed
		ended <- err
	}()
	lines := make(chan message)
	go func() {
		defer close(lines)
		for d := json.NewDecoder(bufio.NewReader(in)); ; {
			var m message
			if d.Decode(&m) != nil { // it has ended
				return
			}
			lines <- m
		}
	}()
	under, over, why := w.follow(ctx, lines)
	if why != "" {
		stop(cmd, lines)
	}
	err = <-ended
	for range lines { // nobody reads what is told too late
	}
	switch {
	case under == nil:
		return over, w.err
	case w.told:
		why = under.Text
	case why == "":
		why = fmt.Sprintf("its process ended: %v", err)
	}
	under.Skipped = !w.told && ctx.Err() != nil
	under.Text = strings.TrimSpace(why + "\n" + w.said.excerpt())
	return false, w.r.add(*under)
}

// follow takes what the process tells until it ends or must be ended, which is why then.
// The check that is under way is not over.
func (w *watch) follow(ctx context.Context, lines <-chan message) (under *finding, over bool, why string) {
	began := time.Now()
	for {
		each := time.NewTimer(w.o.each)
		select {
		case m, open := <-lines:
			each.Stop()
			switch {
			case !open:
			case m.Began != nil:
				under, began = m.Began, time.Now()
				continue
			case m.Ended != nil && !m.Ended.OK && !m.Ended.Skipped: // and so has the process, soon
				under, w.told = m.Ended, true
				continue
			case m.Ended != nil:
				if under, w.err = nil, w.r.add(*m.Ended); w.err != nil {
					return nil, false, "what was found cannot be written"
				}
				continue
			default:
				return nil, true, ""
			}
		case <-each.C:
			why = fmt.Sprintf("it took longer than --each %v, and its process was killed", w.o.each)
		case <-ctx.Done():
			each.Stop()
			why = fmt.Sprintf("cut off: %v", context.Cause(ctx))
		}
		if under != nil && !w.told {
			under.Seconds = time.Since(began).Seconds()
		}
		return under, false, why
	}
}

// stop ends a process; it says first where its goroutines are.
func stop(cmd *exec.Cmd, lines <-chan message) {
	late := time.After(3 * time.Second)
	for open := cmd.Process.Signal(syscall.SIGQUIT) == nil; open; {
		select {
		case _, open = <-lines:
		case <-late:
			open = false
		}
	}
	kill(cmd)
}

// kill kills a process and those that it has started.
func kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody may be left
}

// child is the command that does the checks from one on.
func (o *options) child(ctx context.Context) func(from int) (*exec.Cmd, error) {
	return func(from int) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		size, err := json.Marshal(o.size)
		if err != nil {
			return nil, err
		}
		left := o.limit
		if end, ok := ctx.Deadline(); ok {
			left = max(time.Until(end), time.Millisecond)
		}
		args := []string{"--from", fmt.Sprint(from), "--size", string(size), "--out", o.out, "--limit", left.String(), "--steps", fmt.Sprint(o.steps), "--lanes", fmt.Sprint(o.lanes), fmt.Sprintf("--body=%v", o.body),
			"--peer", o.peer, "--precision", strings.Join(o.only, ","), "--part", strings.Join(o.parts, ","), "--net", strings.Join(o.nets, ","), "--batch", strings.Trim(strings.ReplaceAll(fmt.Sprint(o.batches), " ", ","), "[]")}
		return exec.Command(self, args...), nil //nolint:gosec // this program
	}
}
