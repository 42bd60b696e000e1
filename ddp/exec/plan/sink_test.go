package plan

import (
	"testing"

	"ebtrain/ddp/graph"
)

// sunken is a graph in which y, the rectifier of x, could be made where x comes or later. last
// is a product that needs what comes two groups later, of y and of that.
func sunken(build func(b *graph.Builder, x, y, later graph.ID, last func() graph.ID)) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		x, w := b.Input("x", graph.T(graph.F32, 4096, 16)), b.Input("w", graph.T(graph.F32, 16, 16))
		later := b.MatMul(x, w, false, false)
		w2 := b.Tanh(b.MatMul(w, w, false, false))
		y := b.Relu(x)
		build(b, x, y, later, func() graph.ID { return b.MatMul(y, w2, false, false) })
	}
}

// What is read in later groups alone is made in the first of them, where one of its readers is;
// where none is, it is made beside what reads the same array, and not in a group of its own.
func TestSink(t *testing.T) {
	for name, c := range map[string]struct {
		build  func(b *graph.Builder, x, y, later graph.ID, last func() graph.ID)
		groups int
	}{
		"a reader in the group, and one just behind it": {func(b *graph.Builder, _, y, later graph.ID, last func() graph.ID) {
			b.Output("sum", b.Add(y, later))
			b.Output("last", last())
		}, 1},
		"the same, the other first": {func(b *graph.Builder, _, y, later graph.ID, last func() graph.ID) {
			b.Output("last", last())
			b.Output("sum", b.Add(y, later))
		}, 1},
		"none in the group": {func(b *graph.Builder, x, _, _ graph.ID, last func() graph.ID) {
			b.Output("last", last())
			b.Output("sum", b.SumKeep(x, 0))
		}, 1},
		"a reader in the group, and one that wants it before": {func(b *graph.Builder, _, y, later graph.ID, _ func() graph.ID) {
			b.Output("early", b.MatMul(y, b.Input("v", graph.T(graph.F32, 16, 2)), false, false))
			b.Output("sum", b.Add(y, later))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			mustCount(t, planOf(t, sunken(c.build)), map[string]int{"fused f32[4096,16]": c.groups})
		})
	}
}
