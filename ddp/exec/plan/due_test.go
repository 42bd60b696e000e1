package plan

import (
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// twoLayers is a step whose gradients get a part more behind the backward pass, as of
// weight decay, before they are reduced: the last layer's first.
func twoLayers(t *testing.T, part func(b *graph.Builder, w graph.ID) graph.ID) *Plan {
	t.Helper()
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	x, w1, w2 := b.Input("x", f(8, 16)), b.Var("w1", f(16, 32)), b.Var("w2", f(32, 4))
	y := b.MatMul(b.Relu(b.MatMul(x, w1, false, false)), w2, false, false)
	loss := b.Mean(b.Square(y))
	grads := b.Grad(loss, w1, w2)
	for i, w := range []graph.ID{w1, w2} {
		grads[i] = b.Add(grads[i], part(&b, w))
	}
	last := b.AllReduce(collective.Mean, "last", grads[1])[0]
	first := b.AllReduce(collective.Mean, "first", grads[0])[0]
	b.Assign(w2, b.Sub(w2, last))
	b.Assign(w1, b.Sub(w1, first))
	b.Output("loss", loss)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, g, 2)
}

// at is the number of the first, or of the last, step whose op says all of that.
func at(t *testing.T, p *Plan, last bool, said ...string) int {
	t.Helper()
	n := -1
	for i, s := range p.Steps {
		if !slices.ContainsFunc(said, func(w string) bool { return !strings.Contains(s.Op.String(), w) }) && (n < 0 || last) {
			n = i
		}
	}
	if n < 0 {
		t.Fatalf("no step says %q:\n%s", said, dump(t, p))
	}
	return n
}

// TestGradientsLeaveEarly: the last layer's gradient travels while the first layer's is
// computed, although it is complete only behind both in the graph.
func TestGradientsLeaveEarly(t *testing.T) {
	p := twoLayers(t, func(b *graph.Builder, w graph.ID) graph.ID { return b.Scale(w, 0.1) })
	if start, product := at(t, p, false, "start", `"last"`), at(t, p, true, "matmul"); start > product {
		t.Errorf("the last layer's gradient starts in step %d, after the last product of the backward pass in %d:\n%s", start, product, dump(t, p))
	}
}

// TestVariablesAloneWait: what is made of variables alone stays where it stands, or it
// would lie about from the beginning of the step.
func TestVariablesAloneWait(t *testing.T) {
	p := twoLayers(t, func(b *graph.Builder, w graph.ID) graph.ID {
		return b.BroadcastTo(b.SumKeep(b.Square(w), 0, 1), b.Type(w).Shape)
	})
	if first := p.Steps[0].Op.String(); !strings.Contains(first, "matmul") {
		t.Errorf("the step begins with %s, expected the first product:\n%s", first, dump(t, p))
	}
}
