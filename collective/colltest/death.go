package colltest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective"
)

// Environment of a process that plays one rank.
const (
	envRank  = "COLLTEST_RANK"
	envSize  = "COLLTEST_SIZE"
	envDir   = "COLLTEST_DIR"
	envScene = "COLLTEST_SCENE"
)

// Scenes of a death. In each, rank victim kills itself with SIGKILL.
const (
	sceneInside = "inside" // while all-reduces of a large vector run
	sceneSmall  = "small"  // while all-reduces of a small vector run
	sceneBefore = "before" // while the others are blocked in a collective
	sceneIdle   = "idle"   // while nobody is in a collective

	sceneForever = "forever" // nobody dies by itself
)

// detection is how soon survivors must know, on any machine: before they give up by themselves.
// How soon they do is measured elsewhere.
const detection = limit / 2

// Main plays one rank and ends the process, if that is what this process was
// started for; otherwise it returns. TestMain calls it first.
func Main(open func(ctx context.Context, rank, size int, dir string) (collective.Comm, error)) {
	if os.Getenv(envScene) == "" {
		return
	}
	if err := play(open); err != nil {
		fmt.Println("colltest:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func play(open func(ctx context.Context, rank, size int, dir string) (collective.Comm, error)) error {
	rank, err1 := strconv.Atoi(os.Getenv(envRank))
	size, err2 := strconv.Atoi(os.Getenv(envSize))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := open(ctx, rank, size, os.Getenv(envDir))
	if err != nil {
		return err
	}
	n := 100
	scene, victim := os.Getenv(envScene), rank == size/2
	if scene == sceneInside {
		n = 2 << 20
	}
	mem, err := c.Alloc(4 * n)
	if err != nil {
		return err
	}
	err = collective.Do(ctx, c, collective.Request{Kind: collective.Barrier})
	if victim && err != nil {
		return err
	}
	if victim && scene != sceneForever {
		go killSelf(scene)
		if scene == sceneBefore || scene == sceneIdle {
			select {}
		}
	}
	if scene == sceneIdle {
		time.Sleep(300 * time.Millisecond)
	}
	req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Label: "doomed", Vec: mem.As(collective.F32)}
	for err == nil { // else the victim died before this rank had left the barrier
		err = collective.Do(ctx, c, req)
	}
	peer := -1
	if e, ok := errors.AsType[*collective.Error](err); ok {
		peer = e.Peer
	}
	fmt.Printf("colltest: lost=%v peer=%d %v\n", errors.Is(err, collective.ErrPeerLost), peer, err)
	return c.Close()
}

func killSelf(scene string) {
	time.Sleep(100 * time.Millisecond)
	fmt.Println("colltest: dying", scene)
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
}

// death lets a process die and demands that all others are told, and soon, and who it was.
func (f Factory) death(t *testing.T) {
	if f.Open == nil {
		t.Skip("the factory opens no groups of processes")
	}
	for _, scene := range []string{sceneInside, sceneSmall, sceneBefore, sceneIdle} {
		for _, n := range []int{2, 4} {
			if n > f.MaxRanks || n == 2 && (scene != sceneInside || f.brief()) {
				continue
			}
			t.Run(fmt.Sprintf("%s/ranks=%d", scene, n), func(t *testing.T) { dies(t, scene, n) })
		}
	}
}

// Spawn starts n processes that meet in dir and play their ranks until one of
// them dies or, if doomed is false, until they are killed. The test's end
// kills and awaits them.
func Spawn(t testing.TB, n int, dir string, doomed bool) []*exec.Cmd {
	scene := sceneForever
	if doomed {
		scene = sceneInside
	}
	cmds, _ := spawn(t, scene, n, dir)
	return cmds
}

func spawn(t testing.TB, scene string, n int, dir string) ([]*exec.Cmd, []bytes.Buffer) {
	cmds := make([]*exec.Cmd, n)
	out := make([]bytes.Buffer, n)
	for r := range cmds {
		cmds[r] = exec.Command(os.Args[0])
		cmds[r].Env = append(os.Environ(), envScene+"="+scene, envDir+"="+dir,
			fmt.Sprintf("%s=%d", envRank, r), fmt.Sprintf("%s=%d", envSize, n))
		cmds[r].Stdout, cmds[r].Stderr = &out[r], &out[r]
		if err := cmds[r].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if cmds[r].ProcessState == nil {
				_ = cmds[r].Process.Kill() // it may have ended meanwhile
				_ = cmds[r].Wait()         // and was to be killed
			}
		})
	}
	return cmds, out
}

// dies runs scene with n processes.
func dies(t *testing.T, scene string, n int) {
	cmds, out := spawn(t, scene, n, t.TempDir())
	ended := make(chan int, n)
	for r, cmd := range cmds {
		go func() {
			_ = cmd.Wait() // how it ended is in ProcessState
			ended <- r
		}()
	}
	var death time.Time
	stuck := time.After(2 * limit)
	for range cmds {
		select {
		case r := <-ended:
			if r == n/2 {
				death = time.Now()
			}
		case <-stuck:
			t.Fatalf("survivors hang")
		}
	}
	took := time.Since(death)
	for r, cmd := range cmds {
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if r == n/2 {
			if !status.Signaled() || status.Signal() != syscall.SIGKILL {
				t.Errorf("victim, rank %d, ended with %v, want SIGKILL; it said:\n%s", r, cmd.ProcessState, &out[r])
			}
			continue
		}
		if !status.Exited() || status.ExitStatus() != 0 || !said(&out[r], fmt.Sprintf("colltest: lost=true peer=%d ", n/2)) {
			t.Errorf("rank %d ended with %v, want exit 0 after ErrPeerLost by rank %d; it said:\n%s", r, cmd.ProcessState, n/2, &out[r])
		}
	}
	if took > detection {
		t.Errorf("survivors ended %v after the victim, want less than %v", took, detection)
	}
	t.Logf("survivors ended %v after the victim: %s", took.Round(time.Millisecond), strings.TrimSpace(out[0].String()))
}

func said(out *bytes.Buffer, line string) bool {
	s := bufio.NewScanner(bytes.NewReader(out.Bytes()))
	for s.Scan() {
		if strings.HasPrefix(s.Text(), line) {
			return true
		}
	}
	return false
}
