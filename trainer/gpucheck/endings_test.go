package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda"
)

// TestEndings: ranks whose peer aborts while they are inside a captured step end soon and say
// why. One that is killed is left to the program's own tests, without -doubles.all.
func TestEndings(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernels of a step; left out under -short")
	}
	cudatest.Use(t)
	how := []end{aborted}
	if *all {
		how = append(how, killed)
	}
	for _, how := range how {
		if _, err := together(t.Context(), task{Ranks: 2, Transport: cuda.TransportNCCL, Launch: cuda.GraphsOn, End: how, Width: 4, Batch: 4}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// TestSaid: what ranks say of an end that they did not want is looked at.
func TestSaid(t *testing.T) {
	for _, c := range []struct {
		how  end
		rank int
		text string
		ok   bool
	}{
		{killed, 0, "a\ngpucheck: rank 1 has died", true},
		{killed, 0, "gpucheck: a timeout", false},
		{aborted, 0, "notice\ngpucheck: rank 1 aborted: " + errAsked.Error() + "\n", true},
		{aborted, 1, "gpucheck: " + errAsked.Error(), true},
		{aborted, 0, "gpucheck: " + errAsked.Error(), false},
		{aborted, 0, "gpucheck: rank 1 aborted: " + errAsked.Error() + "\nclosing: a timeout", false},
		{aborted, 0, "gpucheck: rank 1 aborted", false},
	} {
		if err := c.how.said(c.rank, 1, c.text); (err == nil) != c.ok {
			t.Errorf("%s, rank %d, %q: got %v", c.how, c.rank, c.text, err)
		}
	}
}

// TestSanitized: the suite of backends runs under a sanitizer, here one that does nothing,
// as far as it comes in its time; what a sanitizer finds, and one that never ends, is told.
func TestSanitized(t *testing.T) {
	cudatest.Use(t)
	folder := t.TempDir()
	tool := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "compute-sanitizer"), []byte("#!/bin/sh\n"+script), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	suite := task{Tests: backendPlain, Graphs: 1, Limit: 2 * time.Second}

	tool(`shift 2; exec "$@"`)
	_, numbers, err := sanitized(t.Context(), suite, time.Minute)
	if n, ok := numbers["tests"].(int); err != nil || !ok || n < 2 || numbers["all"] != false {
		t.Errorf("got %v, %v, want some tests, not all", numbers, err)
	}
	tool("echo '=== RUN a'; echo '========= Invalid __global__ write of size 4 bytes'; exit 9")
	if text, _, err := sanitized(t.Context(), suite, time.Minute); err == nil || errors.Is(err, errSkipped) || !strings.Contains(text, "Invalid __global__ write") {
		t.Errorf("got %q, %v, want what was found", text, err)
	}
	tool("echo '========= Invalid __shared__ read of size 4 bytes'; exec sleep 60")
	if _, _, err := sanitized(t.Context(), suite, 500*time.Millisecond); err == nil || errors.Is(err, errSkipped) || !strings.Contains(err.Error(), "Invalid __shared__ read") {
		t.Errorf("one that never ends: got %v, want what it has found", err)
	}
	tool("exec sleep 60")
	if _, _, err := sanitized(t.Context(), suite, 100*time.Millisecond); !errors.Is(err, errSkipped) {
		t.Errorf("one that never ends: got %v", err)
	}
}
