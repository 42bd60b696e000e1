package plan

import (
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// twice puts out a net's result for x and for StopGrad(x); its layers normalise over all
// ranks, and the last result goes through parts of two ranks.
func twice(t *testing.T, world int) *graph.Graph {
	t.Helper()
	var b graph.Builder
	w := b.Var("w", graph.T(graph.F32, 8, 8))
	net := func(x graph.ID) graph.ID {
		for range 2 {
			h := b.MatMul(x, w, false, false)
			m := b.AllReduce(collective.Mean, "norm", b.MeanKeep(h, 0), b.MeanKeep(b.Square(h), 0))
			x = b.Mul(b.Sub(h, m[0]), m[1])
		}
		flat := b.Reshape(x, graph.D(32))
		sum := b.ReduceScatter(collective.Sum, world, "sum", flat)
		return b.Add(b.AllGather(world, "parts", b.Add(b.Part(world, flat), sum)), flat)
	}
	x := b.Input("x", graph.T(graph.F32, 4, 8))
	b.Output("y", net(x))
	b.Output("stopped", net(b.StopGrad(x)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSeenThrough: a net that runs on x and on StopGrad(x) runs once, past its collectives,
// on one rank and on several.
func TestSeenThrough(t *testing.T) {
	for _, o := range []Options{{World: 1}, {World: 2}, {World: 1, Deterministic: true}, {World: 2, Deterministic: true}} {
		p, starts, products := New(twice(t, o.World), o), 0, 0
		for i := range p.Steps {
			switch p.Steps[i].Op.(type) {
			case Start:
				starts++
			case graph.MatMul:
				products++
			}
		}
		if want := map[int]int{1: 0, 2: 4}[o.World]; products != 2 || starts != want {
			t.Errorf("%+v: %d products and %d collectives, want 2 and %d", o, products, starts, want)
		}
	}
}
