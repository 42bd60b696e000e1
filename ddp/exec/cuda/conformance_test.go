package cuda

import (
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// open opens GPU 0 of the machine of doubles.
func open(t testing.TB, c Config) *Backend {
	t.Helper()
	b, err := New(c)
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

// TestConformance runs the suite on the doubles: with plain kernels alone, and with
// those of the libraries.
func TestConformance(t *testing.T) {
	o := exectest.Options{DTypes: []graph.DType{graph.F32}, Graphs: 30}
	if exectest.Race { // each is launched and waited for in the same way
		o.Graphs = 6
	}
	for name, c := range map[string]Config{
		"plain":     {Plain: true, Transport: TransportStaged},
		"libraries": {Transport: TransportStaged},
	} {
		if exectest.Race && c.Plain {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := cudatest.Use(t)
			exectest.Run(t, func(t *testing.T) exec.Backend { return open(t, c) }, o)
			m.Clean()
		})
	}
}

// TestF64 runs a spread of the suite's cases in float64, and two networks.
func TestF64(t *testing.T) {
	m := cudatest.Use(t)
	b := open(t, Config{})
	const every = 17 // each kernel is compiled the first time, which takes long
	var cases []exectest.Case
	for i, c := range exectest.Cases() {
		if i%every == 0 {
			cases = append(cases, c)
		}
	}
	for _, c := range exectest.Networks() {
		if c.Name == "energy, first order" || c.Name == "batch norm" {
			cases = append(cases, c)
		}
	}
	for _, c := range cases {
		if err := exectest.Check(b, c, graph.F64); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	m.Clean()
}
