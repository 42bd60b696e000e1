package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ebtrain/launch/variable"
)

// outEnv tells rank 0 the file for its result, when the launcher was started
// here: on the launcher's output every line would begin with a rank's name.
// (The launcher passes on no EBTRAIN_ names of its own surroundings.)
const outEnv = "RESULT_OF_RANK_0"

// Launch has ddplaunch run this program, which users call by that name, with the same
// arguments on so many ranks of this machine, and prints what rank 0 writes to Output.
func Launch(ctx context.Context, program string, ranks int, args, environ []string, stdout, stderr io.Writer) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where this program is: %w", err)
	}
	launcher, err := findLauncher(program, self)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", program+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	result := filepath.Join(dir, "result")

	cmd := exec.CommandContext(ctx, launcher, append([]string{"-nproc", strconv.Itoa(ranks), self}, args...)...)
	cmd.Env = append(slices.Clone(environ), outEnv+"="+result)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	runtime.LockOSThread() // Pdeathsig means the death of the thread that starts it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true} // a terminal's Ctrl-C would be its second signal
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	failed := cmd.Run()
	text, err := os.ReadFile(result)
	if err == nil { // also of a run that failed in the end
		_, err = stdout.Write(text)
	}
	if failed != nil {
		return fmt.Errorf("%d ranks by %s: %w", ranks, launcher, failed)
	}
	if err != nil {
		return fmt.Errorf("result of rank 0: %w", err)
	}
	return nil
}

// findLauncher is the ddplaunch beside the program self, or that on PATH.
func findLauncher(program, self string) (string, error) {
	beside := filepath.Join(filepath.Dir(self), "ddplaunch")
	if st, err := os.Stat(beside); err == nil && !st.IsDir() {
		return beside, nil
	}
	path, err := exec.LookPath("ddplaunch")
	if err != nil {
		return "", fmt.Errorf("no ddplaunch beside %s nor on PATH: build it there (make build), or run ddplaunch -nproc N %s yourself: %w", self, program, err)
	}
	return path, nil
}

// Output is where rank 0 prints. Closing it makes what was written to be seen.
func Output(environ []string, stdout io.Writer) io.WriteCloser {
	if file, ok := variable.Lookup(environ, outEnv); ok {
		return lateFile{file: file, text: &strings.Builder{}}
	}
	return keptOpen{stdout}
}

// keptOpen is a writer that outlives the program's use of it.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// lateFile is written when it is closed, and only if there is text: the other
// ranks share its name and have none.
type lateFile struct {
	file string
	text *strings.Builder
}

func (l lateFile) Write(p []byte) (int, error) { return l.text.Write(p) }

func (l lateFile) Close() error {
	if l.text.Len() == 0 {
		return nil
	}
	return os.WriteFile(l.file, []byte(l.text.String()), 0o600)
}
