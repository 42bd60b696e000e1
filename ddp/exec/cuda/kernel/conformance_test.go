package kernel

import (
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

func TestConformance(t *testing.T) {
	exectest.Run(t, func(t *testing.T) exec.Backend { return &backend{device: newDevice(t)} },
		exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64}, Graphs: 30})
}
