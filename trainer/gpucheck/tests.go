package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"ebtrain/collective/colltest"
	ddpexec "ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// The tests that a task may name.
const (
	backendPlain     = "exectest, plain kernels"
	backendLibraries = "exectest, libraries"
	groupOf          = "colltest"
)

// testName is what package testing calls them.
const testName = "gpucheck"

// suite runs tests in a process of their own, as package testing ends the one that it is
// in. What they put out is in the log.
func suite(ctx context.Context, t task) (string, map[string]any, error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	both := io.MultiWriter(os.Stdout, &out)
	cmd := exec.CommandContext(ctx, self, "--worker", string(b))
	cmd.Env = append(os.Environ(), envTransport+"="+transports[t.Transport])
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = both, both, time.Second
	if err := cmd.Run(); err != nil {
		if late := cutShort(ctx, cmd, err); late != nil && !faulted.Match(out.Bytes()) {
			return "", nil, late
		}
		return "", nil, fmt.Errorf("the tests failed (%w): what failed is on the output above", err)
	}
	passed := bytes.Count(out.Bytes(), []byte("--- PASS: "))
	if passed < 2 { // there is one around all
		return "", nil, errors.New("no tests were run")
	}
	return "", map[string]any{"tests": passed}, nil
}

// runTests is the process of tests; it ends it.
func runTests(t task) error {
	testing.Init()
	if err := flag.CommandLine.Parse([]string{"-test.v"}); err != nil {
		return err
	}
	f := func(tt *testing.T) { colltest.Run(tt, factory(t.Transport, t.Most)) }
	switch t.Tests {
	case backendPlain:
		f = func(tt *testing.T) { backend(tt, cuda.Config{Plain: true, Transport: cuda.TransportStaged}, t.Graphs) }
	case backendLibraries:
		f = func(tt *testing.T) { backend(tt, cuda.Config{Transport: cuda.TransportStaged}, t.Graphs) }
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: testName, F: within(t.Limit, f)}}, nil, nil)
	return errors.New("package testing has not ended the process")
}

// backend is the suite of backends.
func backend(t *testing.T, c cuda.Config, graphs int) {
	exectest.Run(t, func(t *testing.T) ddpexec.Backend {
		b, err := gpu(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}, Graphs: graphs})
}
