//go:build cgo

package nccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
)

// envGraph has this process replay a graph as one rank: RANK SIZE FOLDER.
const envGraph = "NCCL_TEST_GRAPH"

// playGraph plays what envGraph says until the group ends, and ends the process.
// The last rank kills itself after a while.
func playGraph() {
	var rank, size int
	var dir string
	if n, _ := fmt.Sscan(os.Getenv(envGraph), &rank, &size, &dir); n != 3 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := replay(ctx, rank, size, dir)
	fmt.Printf("lost=%v %v\n", errors.Is(err, collective.ErrPeerLost), err)
	os.Exit(0)
}

func replay(ctx context.Context, rank, size int, dir string) error {
	c, err := open(ctx, rank, size, dir)
	if err != nil {
		return err
	}
	o := c.(*owned)
	p, err := newProgram(ctx, &member{Comm: o.Comm, dev: o.dev})
	if err != nil {
		return err
	}
	if _, err := p.run(ctx, 0, p.enqueue); err != nil {
		return err
	}
	if err := p.capture(); err != nil {
		return err
	}
	if rank == size-1 {
		time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	for run := 1; err == nil; run++ {
		_, err = p.run(ctx, run, func() error { return p.graph.Launch(p.s) })
	}
	return errors.Join(err, p.close(), o.Close())
}

// TestDeathInGraph: a process that is killed inside a captured program is named
// by all others, who end and leave nothing.
func TestDeathInGraph(t *testing.T) {
	const size = 3
	cudatest.Use(t)
	t.Setenv("EBDOUBLE_DEVICES", fmt.Sprint(size))
	dir := t.TempDir()
	cmds, out := make([]*exec.Cmd, size), make([]bytes.Buffer, size)
	for r := range cmds {
		cmds[r] = exec.Command(os.Args[0])
		cmds[r].Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", envGraph, r, size, dir))
		cmds[r].Stdout, cmds[r].Stderr = &out[r], &out[r]
		if err := cmds[r].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmds[r].Process.Kill() }) // it may have ended
	}
	for r := range cmds {
		err := cmds[r].Wait()
		if (err == nil) == (r == size-1) {
			t.Errorf("rank %d ended with %v: %s", r, err, &out[r])
		}
		if r < size-1 && !strings.HasPrefix(out[r].String(), "lost=true collective: peer lost: rank 2: its process has ended") {
			t.Errorf("rank %d said %s", r, &out[r])
		}
	}
}
