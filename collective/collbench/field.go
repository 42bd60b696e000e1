package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"ebtrain/launch/netns"
)

// A field is where ranks run: on this machine as it is, or each on a host of its own,
// made of namespaces, where those of other libraries run, too.
type field struct {
	net *netns.Network // nil: this machine
	dir string         // where programs begin
}

func newField(opt options) (f *field, err error) {
	f = &field{}
	if f.dir, err = os.Getwd(); err != nil {
		return nil, err
	}
	if opt.spaces {
		if f.net, err = netns.New(opt.nproc, 0); err != nil {
			return nil, fmt.Errorf("--network %s: %w", namespaces, err)
		}
	}
	return f, nil
}

func (f *field) close() error {
	if f.net == nil {
		return nil
	}
	return f.net.Close()
}

// address is where rank r listens.
func (f *field) address(r int) string {
	if f.net == nil {
		return loopback
	}
	return f.net.Hosts[r].Addr
}

// link is the name of what others reach a rank by.
func (f *field) link() string {
	if f.net == nil {
		return "lo"
	}
	return netns.Interface
}

// command is a program where rank r runs. It ends with ctx, and with this process.
func (f *field) command(ctx context.Context, r int, args ...string) *exec.Cmd {
	if f.net != nil {
		args = f.net.Hosts[r].Enter(f.dir, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = os.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// failure is one of the programs of a job, that failed.
type failure struct {
	err  error  // with its rank, if there are several
	said string // to its standard error, unless that was somebody's already
}

func (f *failure) Error() string {
	if f.said == "" {
		return f.err.Error()
	}
	return fmt.Sprintf("%v; it said %q", f.err, f.said)
}

func (f *failure) Unwrap() error { return f.err }

// together runs the programs of one job to their end, and is the processor time that
// they and their children took. If one fails, all end, and the error is a *failure. Which
// programs these were the caller says.
func together(cmds []*exec.Cmd) (used time.Duration, err error) {
	runtime.LockOSThread() // Pdeathsig means the death of the thread that starts them
	defer runtime.UnlockOSThread()
	said := make([]bytes.Buffer, len(cmds))
	ended := make(chan int, len(cmds))
	errs := make([]error, len(cmds))
	running := 0
	for i, cmd := range cmds {
		if cmd.Stderr == nil {
			cmd.Stderr = &said[i]
		}
		if err = cmd.Start(); err != nil {
			break
		}
		running++
		go func() {
			errs[i] = cmd.Wait()
			ended <- i
		}()
	}
	for started := cmds[:running]; running > 0; running-- {
		if err != nil {
			for _, cmd := range started {
				_ = cmd.Cancel() // it has ended, or will
			}
		}
		i := <-ended
		used += cmds[i].ProcessState.UserTime() + cmds[i].ProcessState.SystemTime()
		if err == nil && errs[i] != nil {
			err = errs[i]
			if len(cmds) > 1 {
				err = fmt.Errorf("rank %d: %w", i, err)
			}
			err = &failure{err, string(bytes.TrimSpace(said[i].Bytes()))}
		}
	}
	if err != nil {
		return 0, err
	}
	return used, nil
}
