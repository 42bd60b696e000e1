package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopped: a signal ends collbench with a sentence and the code of a death by it,
// whoever started its ranks, and no temporary file is left. The head of its table comes before anything is measured.
func TestStopped(t *testing.T) {
	needPrograms(t)
	for _, args := range []string{"collbench -nproc 2", "ddplaunch -nproc 2 collbench"} {
		t.Run(args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			fields := strings.Fields(args + " --sizes 4K --iters 1000000000 --max-time 1h")
			cmd := exec.CommandContext(ctx, filepath.Join(bin, fields[0]), fields[1:]...)
			var said bytes.Buffer
			cmd.Stderr = &said
			temp := t.TempDir()
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil { // it is about to measure
				t.Errorf("it has not printed the head of its table: %v", err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			const want = "collbench: stopped by SIGTERM: " + unfinished + "\n"
			if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) || !strings.HasSuffix(said.String(), want) {
				t.Errorf("code %d, it said %q, want 143 and %q", code, &said, want)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
		})
	}
}
