package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

const underSanitizer = "under compute-sanitizer"

// sanitizedSuite is how long the suite of backends has under it, at most: there it takes many
// times as long, so it ends by itself where it is then, and the sanitizer sums up.
const sanitizedSuite = 2 * time.Minute

// sanitized runs a process under compute-sanitizer, where that is, for so long at most.
func sanitized(ctx context.Context, t task, limit time.Duration) (string, map[string]any, error) {
	tool, err := exec.LookPath("compute-sanitizer")
	if err != nil {
		return "", nil, fmt.Errorf("%w: there is no compute-sanitizer on PATH", errSkipped)
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "--error-exitcode", "9", self, "--worker", string(b))
	cmd.WaitDelay = time.Second // its program may outlive it
	out, err := cmd.CombinedOutput()
	if late := cutShort(ctx, cmd, err); late != nil {
		err = fmt.Errorf("%w: %w", errSkipped, late)
		if line := faulted.Find(out); line != nil {
			err = fmt.Errorf("before the time was over: %s", line)
		}
	}
	tail := string(out[max(0, len(out)-2000):])
	if t.Tests == "" {
		return tail, nil, err
	}
	begun := bytes.Count(out, []byte("=== RUN "))
	if err == nil && begun < 2 { // there is one around all
		err = errors.New("no tests were run")
	}
	return tail, map[string]any{"tests": begun, "all": !bytes.Contains(out, []byte(cutOff))}, err
}

// faulted is what a sanitizer, or a test, says of what is wrong.
var faulted = regexp.MustCompile(`(?m)^(?:=+ +(?:Invalid|Misaligned|Program hit|Uninitialized|Out-of-range|.*ERROR SUMMARY: [1-9]).*|\s*--- FAIL: .*)$`)

// cutShort is why a process that failed with err was killed: its context had ended. nil is that
// it ended by itself.
func cutShort(ctx context.Context, cmd *exec.Cmd, err error) error {
	if err == nil || ctx.Err() == nil || cmd.ProcessState.ExitCode() >= 0 { // which a signal leaves at -1
		return nil
	}
	return context.Cause(ctx)
}

// cutOff is said of tests that are not all done.
const cutOff = "gpucheck: no more tests are done, for the time is over"

// within is f; after so long the process ends, well if no test has failed.
func within(limit time.Duration, f func(*testing.T)) func(*testing.T) {
	if limit == 0 {
		return f
	}
	return func(t *testing.T) {
		defer time.AfterFunc(limit, func() {
			fmt.Println(cutOff)
			if t.Failed() {
				os.Exit(1)
			}
			os.Exit(0)
		}).Stop()
		f(t)
	}
}
