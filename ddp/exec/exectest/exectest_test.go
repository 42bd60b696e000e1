package exectest_test

import (
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/queued"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// TestRef runs the suite on the reference itself: it must pass, in both types.
func TestRef(t *testing.T) {
	exectest.Run(t, func(*testing.T) exec.Backend { return ref.New() }, exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}, NoLimit: true})
}

// TestQueued runs the suite on the reference with a queue, as a device has one.
func TestQueued(t *testing.T) {
	exectest.Run(t, func(*testing.T) exec.Backend { return queued.Backend{Backend: ref.New(), Runs: 2} }, exectest.Options{Graphs: 10, NoLimit: true})
}
