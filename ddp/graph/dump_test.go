package graph_test

import (
	"os"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// smallModel is a model with a gradient, a draw, an all-reduce and assignments;
// c is a constant in it, dead adds nodes that nothing needs.
func smallModel(t *testing.T, c float64, dead bool) *graph.Graph {
	t.Helper()
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 2, 1, 4, 4)), b.Var("energy.weight", graph.T(graph.F32, 3, 1, 3, 3))
	var e, noisy graph.ID
	b.Scope("energy", func() {
		noise := b.Draw(b.Input("key", graph.KeyType), graph.Normal, 3, 1, b.Type(x))
		noisy = b.Add(x, b.Scale(noise, c))
		if dead {
			b.Exp(noisy)
		}
		b.Scope("conv1", func() { e = b.Elu(b.Conv2D(noisy, w, graph.NewConv(3, 1, 1)), 1) })
	})
	pooled := b.MaxPool2D(e, graph.SquareWindow(2, 2, 0))
	loss := b.Mean(b.Square(pooled))
	g := b.AllReduce(collective.Mean, "energy/bucket 0", b.Grad(loss, w)[0], loss)
	b.Output("loss", g[1])
	b.Assign(w, b.Sub(w, b.Scale(g[0], 1e-3)))
	m, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func dump(t *testing.T, g *graph.Graph) string {
	t.Helper()
	var text strings.Builder
	if err := g.Dump(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestDump compares a dump with testdata/dump.txt. To accept a change, set
// UPDATE=1 and read the difference.
func TestDump(t *testing.T) {
	const file = "testdata/dump.txt"
	got := dump(t, smallModel(t, 0.3, true))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the dump is not that of %s:\n%s", file, got)
	}
}

func TestDigest(t *testing.T) {
	base := smallModel(t, 0.3, false)
	if smallModel(t, 0.3, false).Digest() != base.Digest() {
		t.Error("equal graphs have different digests")
	}
	if smallModel(t, 0.3, true).Digest() != base.Digest() {
		t.Error("dead nodes change the digest")
	}
	if smallModel(t, 0.30000000000000004, false).Digest() == base.Digest() {
		t.Error("another constant has the same digest")
	}
}

// TestLive: the live part is what outputs and assignments need.
func TestLive(t *testing.T) {
	var b graph.Builder
	x, v := b.Input("x", scalar), b.Var("v", scalar)
	dead, live, assigned := b.Exp(x), b.Sin(x), b.Cos(x)
	b.Output("y", live)
	b.Assign(v, assigned)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	marks := g.Live()
	for _, c := range []struct {
		name string
		id   graph.ID
		want bool
	}{{"x", x, true}, {"v", v, true}, {"exp", dead, false}, {"sin", live, true}, {"cos", assigned, true}} {
		if marks[g.NodeOf(c.id)] != c.want {
			t.Errorf("%s: live is %v, want %v", c.name, !c.want, c.want)
		}
	}
	if got := g.Assigns(); len(got) != 1 || got[0] != (graph.Assignment{Var: v, Value: assigned}) {
		t.Errorf("assignments %v", got)
	}
	if g.Type(live) != scalar || g.NumValues() != 6 {
		t.Errorf("type %v of %d values", g.Type(live), g.NumValues())
	}
}

// TestBuildIsFinal: a graph does not change when its builder goes on.
func TestBuildIsFinal(t *testing.T) {
	var b graph.Builder
	b.Output("y", b.Sin(b.Input("x", scalar)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := dump(t, g)
	b.Output("z", b.Cos(b.Input("x2", scalar)))
	b.Grad(b.Exp(b.Input("x", scalar)), b.Input("x", scalar))
	if after := dump(t, g); after != before {
		t.Errorf("the graph became\n%s", after)
	}
}
