package cpu

import (
	"context"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// In a deterministic program an output that is added changes no bit of another: the sum
// of c·x is not c times the sum of x where that is an output, too.
func TestDeterministicOutputsAreAlone(t *testing.T) {
	be := open(t, Config{Threads: 1})
	const rows, cols = 64, 128
	run := func(also bool) []float32 {
		var b graph.Builder
		x, c := b.Input("x", graph.T(graph.F32, rows, cols)), b.Input("c", graph.T(graph.F32, 1, cols))
		if also {
			b.Output("sum of x", b.SumKeep(x, 0))
		}
		b.Output("sum of cx", b.SumKeep(b.Mul(x, c), 0))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p, err := be.Compile(g, exec.Options{Name: "sums", Deterministic: true})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, p)
		noise := make([]float64, rows*cols)
		philox.Name{Purpose: philox.Testing}.Normal(noise)
		for i, n := range noise {
			p.Input("x").F32()[i] = float32(n)
			p.Input("c").F32()[i%cols] = float32(n)
		}
		if err := exec.Run(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(p.Output("sum of cx").F32())
	}
	alone, beside := run(false), run(true)
	differ := 0
	for i := range alone {
		if alone[i] != beside[i] {
			differ++
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d sums of c·x differ in a program that has the sums of x, too", differ, cols)
	}
}
