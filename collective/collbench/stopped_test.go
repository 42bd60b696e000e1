package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStopped: a signal ends collbench with a sentence and the code of a death by it,
// whoever started its ranks.
func TestStopped(t *testing.T) {
	needPrograms(t)
	for _, args := range []string{"collbench -nproc 2", "ddplaunch -nproc 2 collbench"} {
		t.Run(args, func(t *testing.T) {
			// The head comes after a second, and a line every two or three.
			fields := strings.Fields(args + " --sizes 4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M --iters 1000000000 --max-time 1s")
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, fields[0]), fields[1:]...)
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil { // it measures
				t.Errorf("it printed nothing: %v", err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			const want = "collbench: stopped by SIGTERM: " + unfinished + "\n"
			if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) || !strings.HasSuffix(said.String(), want) {
				t.Errorf("code %d, it said %q, want 143 and %q", code, &said, want)
			}
		})
	}
}
