package plan

import (
	"testing"

	"ebtrain/ddp/graph"
)

// recurrences are (x, y) → (x', y'), each step of which reads what the last
// one made twice.
var recurrences = map[string]func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID){
	"leapfrog": func(b *graph.Builder, q, p graph.ID) (graph.ID, graph.ID) {
		q = b.Add(q, b.Scale(p, 0.1))
		return q, b.Sub(p, b.Scale(q, 0.1))
	},
	"Fibonacci": func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID) { return b.Mul(x, y), x },
	"heavy ball": func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID) {
		return b.Sub(b.Scale(x, 1.8), b.Scale(y, 0.9)), x
	},
	"rotation": func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID) { return b.Sub(x, y), b.Add(x, y) },
	"scaled rotation": func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID) {
		return b.Scale(b.Sub(x, y), 0.7), b.Scale(b.Add(x, y), 0.7)
	},
}

// unrolled is n steps of a recurrence, whose end two groups read.
func unrolled(t *testing.T, n int, step func(b *graph.Builder, x, y graph.ID) (graph.ID, graph.ID)) *graph.Graph {
	t.Helper()
	var b graph.Builder
	typ := graph.T(graph.F32, 4096)
	x, y := b.Input("x", typ), b.Input("y", typ)
	for range n {
		x, y = step(&b, x, y)
	}
	b.Output("y", b.Mul(x, b.Sum(x)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What derive looks at grows with the nodes, however often paths meet.
func TestDeriveIsLinear(t *testing.T) {
	for name, step := range recurrences {
		d := lower(unrolled(t, 500, step), Options{})
		r := newDeriving(d)
		r.drop()
		r.swap()
		if most := maxOps * len(d.nodes); r.visits > most {
			t.Errorf("%s: looked at %d nodes, want %d at most in %d", name, r.visits, most, len(d.nodes))
		}
	}
}

// Ten thousand steps are one group and the sum's reader.
func TestLongRecurrences(t *testing.T) {
	n := 10000
	if testing.Short() {
		n = 1000
	}
	for name, step := range recurrences {
		p := New(unrolled(t, n, step), Options{Remat: true})
		p.Allocate()
		if len(p.Steps) != 3 {
			t.Errorf("%s: %d steps, want 3", name, len(p.Steps))
		}
	}
}

// A sum of many arrays, each made in a group of its own, is taken apart at once.
func TestSplitAtOnce(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", image)
	all := b.Zeros(image)
	const n = 2000
	for range n {
		x = b.Exp(b.Mul(x, b.SumKeep(x, 1)))
		all = b.Add(x, all)
	}
	b.Output("sum", b.SumKeep(all, 0))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := lower(g, Options{})
	if !splitOnce(d) || splitOnce(d) {
		t.Error("want the sum taken apart in one round")
	}
}
