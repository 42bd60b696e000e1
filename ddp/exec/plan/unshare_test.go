package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// sums are some sums of x, y and combinations of them, each reduced by all, read, or
// both, in views and an order drawn at random.
func sums(r *rand.Rand, all func(b *graph.Builder, x ...graph.ID) []graph.ID) (*graph.Graph, error) {
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, 1024, 5)), b.Input("y", graph.T(graph.F32, 1024, 5))
	a := b.Input("a", graph.T(graph.F32, 1, 5))
	arrays := []graph.ID{x, y, b.Neg(x), b.Sub(x, y), b.Add(b.Mul(y, a), b.Sub(x, b.MeanKeep(x, 0))), b.Scale(y, 3)}
	for n := range 6 {
		s := b.SumKeep(arrays[r.IntN(len(arrays))], 0)
		if r.IntN(2) == 0 {
			s = b.Reshape(s, graph.D(5))
		}
		if r.IntN(2) == 0 {
			reduced := all(&b, s)[0]
			arrays = append(arrays, b.Mul(x, b.Reshape(reduced, graph.D(1, 5))))
			s = reduced
		}
		b.Output(fmt.Sprint("sum ", n), s)
	}
	return b.Build()
}

// A collective reduces in place, so nothing may read what it takes once it has begun,
// nor what comes out of it instead. Of two ranks that compute the same a sum is twice
// their own, and the machine spoils what is under way.
func TestUnshare(t *testing.T) {
	for seed := range uint64(40) {
		g, err := sums(rand.New(rand.NewPCG(seed, 8)), func(b *graph.Builder, x ...graph.ID) []graph.ID {
			return b.AllReduce(collective.Sum, "sums", x...)
		})
		if err != nil {
			t.Fatal(err)
		}
		alone, err := sums(rand.New(rand.NewPCG(seed, 8)), func(b *graph.Builder, x ...graph.ID) []graph.ID {
			for i := range x {
				x[i] = b.Scale(x[i], 2)
			}
			return x
		})
		if err != nil {
			t.Fatal(err)
		}
		p, one := compile(t, g, 2), compile(t, alone, 1)
		replay(t, p)
		want, got := outputs(t, one, 1), outputs(t, p, 2)
		for i := range want {
			for k := range want[i].Type.Shape.Len() {
				if a, b := got[i].At(k), want[i].At(k); !(math.Abs(a-b) <= 1e-4*(1+math.Abs(b))) {
					t.Fatalf("seed %d, %s, element %d: got %v, want %v, from\n%s", seed, p.Outputs[i].Name, k, a, b, dump(t, p))
				}
			}
		}
	}
}

// outputs are those of a plan on so many ranks that compute the same.
func outputs(t *testing.T, p *Plan, world int) []*exec.Tensor {
	t.Helper()
	m, err := newMachine(p, world)
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	for i, run := range m.steps {
		if err := run(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return m.logical()[:len(p.Outputs)]
}

// So it is where the collective takes views of sums, one behind the other, and what follows
// from the second reads the sum itself: of two ranks that compute the same, twice it travels,
// and three times it stays.
func TestUnshareOfViews(t *testing.T) {
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, 1024, 7)), b.Input("y", graph.T(graph.F32, 1024, 5))
	all := b.AllReduce(collective.Sum, "sums", b.SumKeep(x, 0), b.Reshape(b.SumKeep(y, 0), graph.D(5)))
	b.Output("all", all[1])
	b.Output("own", b.SumKeep(b.Scale(y, 3), 0))
	b.Output("other", all[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, g, 2)
	replay(t, p)
	mustCount(t, string(dump(t, p)), map[string]int{"reduce_sum": 2})
	got := outputs(t, p, 2)
	for i := range 5 {
		if all, own := got[0].At(i), got[1].At(i); !(math.Abs(all/2-own/3) <= 1e-4*(1+math.Abs(all))) {
			t.Errorf("sum %d is %v of both ranks, and three times it %v, from\n%s", i, all, own, dump(t, p))
		}
	}
}
