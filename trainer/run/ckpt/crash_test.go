package ckpt

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/ddp/graph"
)

const crashEnv = "EBTRAIN_TEST_CKPT_DIR"

// TestMain makes the test binary also the program that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// big is the checkpoint of the crash test: 300 kB that depend on the step.
func big(step int64) (State, map[string][]Named) {
	s := State{Step: step, World: 1}
	return s, map[string][]Named{
		Weights:   {{"w", filled(graph.F32, float64(step), 50_000)}},
		Optimizer: {{"m", filled(graph.F32, -float64(step), 25_000)}},
	}
}

func writeForEver(dir string) error {
	step := int64(0)
	if _, s, _, err := ReadLatest(dir, slog.Default()); err == nil {
		step = s.Step
	}
	for i := int64(0); ; i++ {
		s, groups := big(step + i/2) // each twice: replacing is tried too
		if _, err := Write(dir, s, groups); err != nil {
			return err
		}
		if err := Prune(dir, 3, s.Step); err != nil {
			return err
		}
		if i == 0 {
			fmt.Println("ready")
		}
	}
}

// A writer is killed with SIGKILL at random moments, again and again in one
// folder. What is there under a checkpoint's name is always whole.
func TestKilledWhileWriting(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 8
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	found, leftovers := 0, 0
	// A writer may be killed between two checkpoints each time: then there are more rounds.
	for round := 0; round < rounds || (found == 0 || leftovers == 0) && round < 20*rounds; round++ {
		killWriter(t, dir, time.Duration(rng.IntN(60))*time.Millisecond)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				leftovers++
				continue
			}
			found++
			s, groups, err := Read(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			wantS, want := big(s.Step)
			same(t, s, wantS, groups, want)
		}
	}
	if found == 0 || leftovers == 0 {
		t.Errorf("%d checkpoints and %d leftovers seen: the test did not hit what it is for", found, leftovers)
	}
}

// killWriter starts a writer, waits until it has written a checkpoint and
// then for delay, and kills it.
func killWriter(t *testing.T, dir string, delay time.Duration) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(io.LimitReader(out, 100)).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Errorf("the writer said %q, %v", line, err)
	}
	time.Sleep(delay)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended by itself: %v", err)
	}
}
