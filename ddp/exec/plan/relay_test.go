package plan

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// shared is a step of three layers of 16×16 weights on two ranks: gradients are scattered,
// each rank moves its part of the weights, and the weights are gathered.
func shared(t *testing.T, batch int) *Plan {
	t.Helper()
	const width, world = 16, 2
	var b graph.Builder
	y := b.Input("x", graph.T(graph.F32, batch, width))
	var weights []graph.ID
	for i := range 3 {
		w := b.Var(fmt.Sprint("w", i+1), graph.T(graph.F32, width, width))
		y, weights = b.Relu(b.MatMul(y, w, false, false)), append(weights, w)
	}
	loss := b.Mean(b.Square(y))
	for i, g := range b.Grad(loss, weights...) {
		part := b.Var(fmt.Sprint("part", i+1), graph.T(graph.F32, width*width/world))
		sum := b.ReduceScatter(collective.Mean, world, fmt.Sprint("sum ", i+1), b.Reshape(g, graph.D(width*width)))
		moved := b.Sub(part, b.Scale(sum, 0.1))
		b.Assign(part, moved)
		b.Assign(weights[i], b.Reshape(b.AllGather(world, fmt.Sprint("weights ", i+1), moved), graph.D(width, width)))
	}
	b.Output("loss", loss)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, g, world)
}

// TestRelaysRun: the last layer's weights travel back while the first layer's gradient is
// computed, if so much is computed that its sum has surely come; else nothing waits for it
// before there is nothing else to do.
func TestRelaysRun(t *testing.T) {
	for _, tt := range []struct {
		batch int
		early bool
	}{{4096, true}, {4, false}} {
		p := shared(t, tt.batch)
		start, product := at(t, p, false, "start", `"weights 3"`), at(t, p, true, "matmul")
		if wait := at(t, p, false, "wait", `"sum 3"`); (start < product) != tt.early || (wait < product) != tt.early {
			t.Errorf("a batch of %d: the sum is waited for in step %d and the weights start in %d, and the last product is in %d:\n%s", tt.batch, wait, start, product, dump(t, p))
		}
	}
}

// TestWork: what units compute is counted as it is defined, whatever the layout.
func TestWork(t *testing.T) {
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 2, 6, 9, 7)), b.Var("w", graph.T(graph.F32, 8, 3, 3, 3))
	conv := graph.Conv{Window: graph.SquareWindow(3, 2, 1), Groups: 2}
	y := b.Conv2D(x, w, conv) // (2, 8, 5, 4)
	z := b.MatMul(b.Reshape(y, graph.D(16, 20)), b.Input("m", graph.T(graph.F32, 20, 11)), false, false)
	grads := b.Grad(b.Sum(b.Square(z)), x, w)
	for i, id := range append(grads, z) {
		b.Output(fmt.Sprint(i), id)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "work", World: 1})
	want := map[Kind]float64{KindConv2D: 2 * 2 * 8 * 5 * 4 * 27, KindConv2DGradX: 2 * 2 * 8 * 5 * 4 * 27, KindConv2DGradW: 2 * 2 * 8 * 5 * 4 * 27, KindMatMul: 2 * 16 * 20 * 11}
	seen := map[Kind]bool{}
	for i, s := range p.Steps {
		got := p.work(node{op: s.Op, in: s.In, out: s.Out}) - byteMoved*float64(p.Traffic(i))
		if !(math.Abs(got-want[s.Kind()]) <= 1e-6*want[s.Kind()]) {
			t.Errorf("%v: %v operations, want %v", s.Op, got, want[s.Kind()])
		}
		seen[s.Kind()] = true
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("the plan has no %v", kind)
		}
	}
}

// TestBehindALargeOne: a collective travels behind those before it, so what waits for one
// behind a large one comes after work that is ready.
func TestBehindALargeOne(t *testing.T) {
	for _, tt := range []struct {
		before int
		early  bool
	}{{64, true}, {1 << 20, false}} {
		var b graph.Builder
		big := b.AllReduce(collective.Mean, "big", b.Tanh(b.Input("big", graph.T(graph.F32, tt.before))))[0]
		small := b.AllReduce(collective.Mean, "small", b.Tanh(b.Input("small", graph.T(graph.F32, 64))))[0]
		b.Output("again", b.AllReduce(collective.Mean, "again", b.Exp(small))[0])
		b.Output("big", big)
		y := b.Input("x", graph.T(graph.F32, 64, 64))
		for range 8 {
			y = b.MatMul(y, y, false, false)
		}
		b.Output("y", y)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := compile(t, g, 2)
		wait, product := at(t, p, false, "wait", `"small"`), at(t, p, true, "matmul")
		if (wait < product) != tt.early {
			t.Errorf("behind %d numbers it is waited for in step %d, and the last product is in %d", tt.before, wait, product)
		}
	}
}
