package supervise

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

const (
	controlFD  = 3 // in the rank's process
	progressFD = 4

	// drainWait is how long output may still arrive after a group is dead: a
	// process that left the group may hold the pipe for ever.
	drainWait = 500 * time.Millisecond
	// lastWords is how long the last messages of a dead rank may take.
	lastWords = 100 * time.Millisecond
)

// process is one running rank.
type process struct {
	local int
	rank  int
	cmd   *exec.Cmd
	page  *statuspage.Page
	conn  *rendezvous.Conn
	out   *outbox
	log   *logFile // nil for none
	pipes [2]*os.File

	crash   crash
	memory  *oomWatch // of its control group, if that is not the launcher's; of the loop
	watcher watcher   // of the loop
	over    bool      // it has ended, as follows; of the loop
	exit    rendezvous.Exit

	heard     chan struct{} // closed when the control channel has ended
	abandoned chan struct{} // closed when nobody waits for its end any more
	drained   sync.WaitGroup
}

// launch makes the channels of a rank and starts it, on cpus if they are not nil; its
// lines have so many columns.
func launch(s *spawner, cmd *exec.Cmd, cpus *unix.CPUSet, w env.Worker, local, columns int) (*process, error) {
	p := &process{local: local, cmd: cmd, out: newOutbox(), heard: make(chan struct{}), abandoned: make(chan struct{})}
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = theirs.Close(), mine.Close() }() // the rank and FileConn have duplicates
	c, err := net.FileConn(mine)
	if err != nil {
		return nil, fmt.Errorf("make a control channel: %w", err)
	}
	p.conn = rendezvous.NewConn(c)
	page, pageFile, err := statuspage.New()
	if err != nil {
		return nil, errors.Join(err, p.conn.Close())
	}
	defer func() { _ = pageFile.Close() }() // the rank has a duplicate, p.page a mapping
	p.page = page
	page.SetWidth(columns)
	w.ControlFD, w.ProgressFD = controlFD, progressFD
	cmd.Env = append(cmd.Env, w.Environ()...)
	cmd.ExtraFiles = []*os.File{theirs, pageFile}
	cmd.SysProcAttr = groupAttr()
	if err := p.pipe(func() error { return s.start(cmd, cpus) }); err != nil {
		return nil, errors.Join(err, p.conn.Close(), page.Close())
	}
	return p, nil
}

// pipe connects the rank's output and calls start.
func (p *process) pipe(start func() error) error {
	var theirs [2]*os.File
	var err error
	for i := range theirs {
		if p.pipes[i], theirs[i], err = os.Pipe(); err != nil {
			err = fmt.Errorf("make a pipe for output: %w", err)
			break
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = theirs[stdout], theirs[stderr]
	if err == nil {
		err = start()
	}
	for i := range theirs {
		if theirs[i] != nil {
			_ = theirs[i].Close()
		}
		if err != nil && p.pipes[i] != nil {
			_ = p.pipes[i].Close()
		}
	}
	return err
}

// carry reads a stream of the rank to its end.
func (p *process) carry(stream int, to *lines) error {
	_, err := io.Copy(to, onlyReader{p.pipes[stream]})
	if errors.Is(err, os.ErrDeadlineExceeded) { // somebody else holds the pipe, or the console was waited for; see drainWait
		err = carryRest(p.pipes[stream], to)
	}
	to.end()
	return err
}

// carryRest carries what a pipe holds at this moment, whatever its deadline: a read takes
// all of it. Who holds the other end may go on writing for ever.
func carryRest(pipe *os.File, to *lines) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	var held []byte
	var inner error
	err = raw.Control(func(fd uintptr) {
		var size, n int
		if size, inner = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); inner != nil {
			return
		}
		held = make([]byte, size)
		n, inner = unix.Read(int(fd), held)
		held = held[:max(n, 0)]
	})
	_, _ = to.Write(held) // which never fails
	if errors.Is(inner, unix.EAGAIN) {
		inner = nil // it is empty
	}
	return errors.Join(err, inner)
}

// onlyReader hides the WriterTo of os.File.
type onlyReader struct{ io.Reader }

// listen passes the rank's messages on until its end of the channel closes.
func (p *process) listen(handle func(rendezvous.Message)) {
	defer close(p.heard)
	for {
		m, err := p.conn.Receive()
		if err != nil {
			return // the rank has ended or closed its group
		}
		handle(m)
	}
}

// wait blocks until the rank has ended, ends its group, and lets its last
// messages come in.
func (p *process) wait() (rendezvous.Exit, error) {
	if err := await(p.cmd.Process.Pid); err != nil {
		return rendezvous.Exit{}, fmt.Errorf("wait for process %d: %w", p.cmd.Process.Pid, err)
	}
	e, err := killGroup(p.cmd)
	if err != nil {
		return rendezvous.Exit{}, err
	}
	p.drain()
	select {
	case <-p.heard:
	case <-time.After(lastWords):
	}
	exit := rendezvous.Exit{Code: e.code}
	if e.code == crashCode || e.signal == unix.SIGABRT {
		p.hearOut()
	}
	if e.signal != 0 {
		exit.Signal, exit.SignalNumber = unix.SignalName(e.signal), int(e.signal)
		if exit.Signal == "" {
			exit.Signal = fmt.Sprintf("signal %d", int(e.signal))
		}
	}
	if r, ok := p.page.Read(); ok {
		exit.During = r.String()
	}
	p.crash.explain(&exit)
	return exit, nil
}

// hearOut lets the last lines of the rank come in. Who reads them is not waited for.
func (p *process) hearOut() {
	all := make(chan struct{})
	go func() {
		p.drained.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(drainWait):
	}
}

// drain has the reading of the rank's output end.
func (p *process) drain() {
	for _, f := range p.pipes {
		_ = f.SetReadDeadline(time.Now().Add(drainWait)) // a pipe always has deadlines
	}
}

// peak is how much memory the rank, which has ended, had at most, in bytes.
func (p *process) peak() int64 {
	if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss * 1024
	}
	return 0
}

// close releases what the launcher holds of an ended rank, once its output has
// been carried.
func (p *process) close() error {
	p.drained.Wait()
	p.out.close()
	err := errors.Join(p.conn.Close(), p.page.Close(), p.pipes[stdout].Close(), p.pipes[stderr].Close())
	if p.log != nil {
		err = errors.Join(err, p.log.close())
	}
	return err
}
