package plan

import (
	"testing"

	"ebtrain/ddp/graph"
)

// descent is a step with the gradient through n steps of descent on an image, which
// the gradient keeps.
func descent(tb testing.TB, n int) *graph.Graph {
	tb.Helper()
	var b graph.Builder
	x, h := b.Input("x", graph.T(graph.F32, 2, 3, 8, 8)), b.Input("h", graph.T(graph.F32, 2, 4, 8, 8))
	w, u := b.Var("w", graph.T(graph.F32, 4, 3, 3, 3)), b.Var("u", graph.T(graph.F32, 4, 4, 3, 3))
	for range n {
		e := b.Elu(b.Add(b.Conv2D(x, w, graph.NewConv(3, 1, 1)), b.Conv2D(h, u, graph.NewConv(3, 1, 1))), 1)
		inner := b.Add(b.Sum(b.Square(b.AvgPool2D(e, graph.SquareWindow(2, 2, 0)))), b.Scale(b.Sum(b.Square(h)), 0.5))
		h = b.Sub(h, b.Scale(b.Grad(inner, h)[0], 0.1))
	}
	for i, g := range b.Grad(b.Sum(b.Square(h)), w, u) {
		v := []graph.ID{w, u}[i]
		b.Assign(v, b.Sub(v, b.Scale(g, 0.01)))
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// BenchmarkCompile is what the plan of an unrolled step takes, and the part of it that
// finds places in memory: go test ./ddp/exec/plan -bench Compile -benchtime 1x
func BenchmarkCompile(b *testing.B) {
	g := descent(b, 1224)
	b.Logf("%d nodes", len(g.Nodes()))
	o := Options{Name: "unrolled", World: 1}
	b.Run("New", func(b *testing.B) {
		for b.Loop() {
			New(g, o)
		}
	})
	b.Run("Allocate", func(b *testing.B) {
		p := New(g, o)
		for b.Loop() {
			p.Allocate()
		}
	})
}
