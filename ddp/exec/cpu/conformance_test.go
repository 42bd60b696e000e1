package cpu

import (
	"fmt"
	"io"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// open starts a backend that is closed at the end of the test. It shares even
// the smallest work between its threads.
func open(t testing.TB, c Config) exec.Backend {
	t.Helper()
	b, err := start(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, b)
	return b
}

// closing closes c at the end of the test.
func closing(t testing.TB, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// unraced skips what is about numbers under the race detector, to which the types of
// products make no difference.
func unraced(t *testing.T) {
	t.Helper()
	if exectest.Race {
		t.Skip("numbers in bfloat16 are left to runs without the race detector")
	}
}

// The suite runs with the built-in engine, and with plain loops; on one thread
// and on several, one of them more than some extents. The race detector is for several
// threads, which share work in the same way whatever the type and the engine.
func TestConformance(t *testing.T) {
	o := exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}, Graphs: 50}
	if exectest.Race {
		o = exectest.Options{Graphs: 8}
	}
	for _, threads := range []int{1, 3} {
		if exectest.Race && threads == 1 {
			continue
		}
		t.Run(fmt.Sprintf("%d threads", threads), func(t *testing.T) {
			exectest.Run(t, func(t *testing.T) exec.Backend { return open(t, Config{Threads: threads}) }, o)
		})
	}
	if exectest.Race {
		return
	}
	t.Run("plain loops", func(t *testing.T) {
		exectest.Run(t, func(t *testing.T) exec.Backend { return open(t, Config{Threads: 2, Engine: loopEngine{}}) },
			exectest.Options{Graphs: 20})
	})
}
