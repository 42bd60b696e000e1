package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Machines, disks, networks and readers that do not do as they should.

func narrow(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	if err := w.net.LimitIn(0.002); err != nil {
		return j, err
	}
	if err := errors.Join(w.pause(5*time.Second), w.net.LimitIn(0)); err != nil {
		return j, err
	}
	return j, j.goesOn(r)
}

// fullDisk is of a job of one host, whose disk is its own.
func fullDisk(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	h, run := w.net.Hosts[1], filepath.Join(j.dir, "run")
	if err := errors.Join(os.Mkdir(run, 0o755), h.Sh("mount -t tmpfs -o size=16m none "+run)); err != nil {
		return j, err
	}
	defer func() { _ = h.Sh("umount " + run) }() // it goes with the host
	if err := j.exec(h, append([]string{w.launcher, "-nproc", "2"}, j.program()...), nil); err != nil {
		return j, err
	}
	if err := j.await("checkpoint", func() bool {
		out, err := h.Ask("ls " + run + "/ckpt 2>/dev/null | wc -l")
		return err == nil && strings.TrimSpace(out) != "0"
	}); err != nil {
		return j, err
	}
	ranks, begun := j.ranks(), time.Now()
	_ = h.Sh("cat /dev/zero >" + run + "/full 2>/dev/null") // until it fails
	if _, err := j.gone(ranks, begun); err != nil {
		return j, err
	}
	took, err := j.closing(r, j.nodes, begun, 1, `^rank \d.*no space left on device`)
	r.measure("launchers ended", took, 0)
	return j, err
}

func standstill(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	var paused error
	all := j.processes()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, pid := range all {
			if err := syscall.Kill(pid, s); err != nil {
				return j, err
			}
		}
		if s == syscall.SIGSTOP {
			paused = w.pause(3 * time.Second) // all are woken all the same
		}
	}
	return j, errors.Join(paused, j.goesOn(r))
}

func reader(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	unread, out, err := os.Pipe()
	if err != nil {
		return j, err
	}
	defer func() { _ = errors.Join(unread.Close(), out.Close()) }() // nobody reads it
	j.trained = []string{"--print-every", "1"}
	for i := range w.net.Hosts {
		to := out
		if i > 0 {
			to = nil
		}
		if err := j.launch(i, to); err != nil {
			return j, err
		}
	}
	// Fill the pipe, as a long run would have.
	if err := j.awaitStep(3); err != nil {
		return j, err
	}
	if err := fill(out); err != nil {
		return j, err
	}
	if err := j.awaitSteps(5); err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim, begun := ranks[len(ranks)-1], time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 50*time.Millisecond)
	if _, err := j.closing(r, j.nodes[1:], begun, 137, fmt.Sprintf(`^rank %d \(node%d, pid %d\): killed by SIGKILL`, victim.rank, victim.node, victim.pid)); err != nil {
		return j, err
	}
	took, err := j.ends(j.nodes[:1], begun)
	r.measure("launchers ended", took, 0)
	r.exits = append(r.exits, j.nodes[0].code)
	if j.nodes[0].code != 137 {
		r.fault("exit code %d of node 0, want 137", j.nodes[0].code)
	}
	return j, err
}

// fill writes to a pipe until it is full.
func fill(out *os.File) error {
	line := []byte(strings.Repeat("-", 99) + "\n")
	ready := []unix.PollFd{{Fd: int32(out.Fd()), Events: unix.POLLOUT}}
	for {
		switch n, err := unix.Poll(ready, 100); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return nil
		default: // there is room for a short line
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
}

func strangers(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	h := w.net.Hosts[w.hosts-1]
	args := h.Enter(j.dir, w.self)
	cmd := exec.CommandContext(w.ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", floodVar, w.net.Hosts[0].Addr, port))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return j, fmt.Errorf("the flood: %w: %s", err, out)
	}
	return j, j.goesOn(r)
}

// spin keeps all processors busy with n loops, until the function it returns is
// called.
func spin(n int) func() {
	var all []*exec.Cmd
	for range n {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if c.Start() == nil { // fewer will do
			all = append(all, c)
		}
	}
	return func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
}

func busy(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	calm := spin(64)
	err = w.pause(5 * time.Second)
	calm()
	return j, errors.Join(err, j.goesOn(r))
}

func busyStart(w *workshop, r *result) (*job, error) {
	const full = 30
	now, err := strconv.ParseFloat(load(), 64)
	if err != nil {
		return nil, err
	}
	calm := spin(max(0, full-int(now)))
	defer calm()
	begun := time.Now()
	j, err := w.start()
	if err != nil {
		return j, err
	}
	r.measure("the third step", time.Since(begun), 0)
	return j, j.goesOn(r)
}
