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
	"sync"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/nccl"
)

// envGraph has this process replay a graph as one rank: SCENE RANK SIZE FOLDER.
const envGraph = "NCCL_TEST_GRAPH"

// Scenes, of the last rank, in one of its runs.
const (
	dies  = "dies"
	stops = "stops"
	late  = "late" // to launch
)

// playGraph plays what envGraph says until the group ends, and ends the process.
func playGraph() {
	var scene, dir string
	var rank, size int
	if n, _ := fmt.Sscan(os.Getenv(envGraph), &scene, &rank, &size, &dir); n != 4 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := replay(ctx, scene, rank, size, dir)
	fmt.Printf("lost=%v %v\n", errors.Is(err, collective.ErrPeerLost), err)
	os.Exit(0)
}

func replay(ctx context.Context, scene string, rank, size int, dir string) error {
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
	for run := 1; err == nil; run++ {
		launch := func() error { return p.graph.Launch(p.s) }
		if run == 3 && scene != dies {
			nccl.SetTimeout(o.Comm, 500*time.Millisecond) // somebody will be late
		}
		if run == 3 && rank == size-1 {
			launch = func() error { return misfortune(scene, p) }
		}
		_, err = p.run(ctx, run, launch)
	}
	return errors.Join(err, p.close(), o.Close())
}

// misfortune is what the last rank's launch comes to.
func misfortune(scene string, p *program) error {
	if scene == late { // until the others have had enough
		<-p.Failed()
	}
	err := p.graph.Launch(p.s)
	if signal, ok := map[string]syscall.Signal{dies: syscall.SIGKILL, stops: syscall.SIGSTOP}[scene]; ok {
		err = errors.Join(err, syscall.Kill(os.Getpid(), signal))
	}
	return err
}

// TestBadLuckInGraph: of a process that is killed inside a captured program, or stands still
// there, or comes late to it, all others say so, and end and leave nothing.
func TestBadLuckInGraph(t *testing.T) {
	const size = 3
	cudatest.Use(t)
	t.Setenv("EBDOUBLE_DEVICES", fmt.Sprint(size))
	t.Setenv(envTimeout, "1500ms")
	var scenes sync.WaitGroup // they wait for limits, so all at once
	for scene, want := range map[string]string{
		dies:  "lost=true collective: peer lost: rank 2: its process has ended",
		stops: `rank 2 has not come to barrier "the roll call, `,
		late:  `rank 2 has not come to barrier "the roll call, `,
	} {
		cmds, out := spawnGraph(t, scene, size)
		scenes.Go(func() {
			for r, cmd := range cmds {
				last := r == size-1
				if last && scene == stops {
					continue
				}
				if err := cmd.Wait(); (err != nil) != (last && scene == dies) {
					t.Errorf("%s: rank %d ended with %v: %s", scene, r, err, &out[r])
				}
				if !(last && scene == dies) && !strings.Contains(out[r].String(), want) {
					t.Errorf("%s: rank %d said %s, want %s", scene, r, &out[r], want)
				}
			}
		})
	}
	scenes.Wait()
}

// spawnGraph starts the processes of a scene.
func spawnGraph(t *testing.T, scene string, size int) ([]*exec.Cmd, []bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	cmds, out := make([]*exec.Cmd, size), make([]bytes.Buffer, size)
	for r := range cmds {
		cmds[r] = exec.Command(os.Args[0])
		cmds[r].Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", envGraph, scene, r, size, dir))
		cmds[r].Stdout, cmds[r].Stderr = &out[r], &out[r]
		if err := cmds[r].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmds[r].Process.Kill() }) // it may have ended
	}
	return cmds, out
}
