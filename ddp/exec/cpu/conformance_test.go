package cpu_test

import (
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// open starts a backend that is closed at the end of the test.
func open(t testing.TB, threads int) exec.Backend {
	t.Helper()
	b, err := cpu.New(cpu.Config{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) {
	exectest.Run(t, func(t *testing.T) exec.Backend { return open(t, 2) },
		exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}})
}
