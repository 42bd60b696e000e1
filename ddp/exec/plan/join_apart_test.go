package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// What is joined in part, or could be joined in two ways, is computed as it is alone.
func TestJoinedAsAlone(t *testing.T) {
	weights := func(b *graph.Builder, name string) graph.ID { return b.Var(name, graph.T(graph.F32, 4, 4, 3, 3)) }
	conv := func(b *graph.Builder, x, w graph.ID) graph.ID { return b.Conv2D(x, w, same3) }
	energy := func(b *graph.Builder, x graph.ID) graph.ID { return b.Sum(b.Square(x)) }
	for _, tt := range []struct {
		name           string
		forward, gradW int // how many there are
		build          func(b *graph.Builder, x, y, z, w, u graph.ID)
	}{
		{"by the second weights the last two", 2, 0, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			for i, x := range []graph.ID{x, y, z} {
				b.Output(fmt.Sprint("w", i), b.Tanh(conv(b, x, w)))
			}
			b.Output("u", b.Sub(conv(b, y, u), b.Scale(conv(b, z, u), 2)))
		}},
		{"a result that lies among other images", 3, 0, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			first := conv(b, x, w)
			one, two := conv(b, y, u), conv(b, z, u)
			b.Output("y", b.Sub(b.Add(first, one), b.Scale(conv(b, two, w), 2)))
			b.Output("two", two)
		}},
		{"gradients of two weights, of images that lie behind each other", 3, 2, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			v := weights(b, "v")
			both := b.Add(energy(b, conv(b, x, v)), energy(b, conv(b, y, v)))
			g := b.Grad(b.Add(energy(b, conv(b, x, w)), energy(b, conv(b, y, u))), w, u)
			b.Output("v", both)
			b.Output("w", b.Add(g[0], w))
			b.Output("u", b.Add(g[1], u))
		}},
		{"gradients that are read alone, and one that is assigned", 1, 3, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			var sum []graph.ID
			for _, x := range []graph.ID{x, y, z} {
				sum = append(sum, b.Grad(energy(b, conv(b, x, w)), w)[0])
			}
			b.Assign(u, sum[2])
			b.Output("sum", b.Add(b.Add(sum[0], sum[1]), sum[2]))
			b.Output("first", energy(b, sum[0]))
		}},
		{"gradients of one image twice", 1, 2, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			one, two := conv(b, x, w), conv(b, y, w)
			gradient := func(dy graph.ID) graph.ID { return b.Apply(graph.Conv2DGradW{Conv: same3}, z, dy)[0] }
			b.Output("sum", b.Add(gradient(one), gradient(two)))
		}},
		{"by two weights, of what the images by one follow from those by the other", 2, 0, func(b *graph.Builder, _, y, z, w, u graph.ID) {
			b.Output("y", conv(b, y, w))
			b.Output("z", conv(b, z, w))
			both := b.Tanh(b.Add(conv(b, y, u), conv(b, z, u)))
			b.Output("both", conv(b, both, w))
		}},
		{"by two weights, of what one image by one follows from one by the other", 2, 0, func(b *graph.Builder, _, y, z, w, u graph.ID) {
			b.Output("y", conv(b, y, w))
			b.Output("z", conv(b, z, w))
			one := conv(b, y, u)
			b.Output("yu", one)
			b.Output("zu", conv(b, z, u))
			b.Output("one", conv(b, b.Tanh(one), w))
		}},
		{"images that follow from a gradient of others", 2, 2, func(b *graph.Builder, x, y, z, w, u graph.ID) {
			b.Output("y", conv(b, y, w))
			b.Output("z", conv(b, z, w))
			g := b.Grad(b.Add(energy(b, conv(b, y, u)), energy(b, conv(b, z, u))), u)[0]
			last := conv(b, b.Tanh(b.Mul(x, b.Mean(g))), w)
			b.Output("x", last)
			b.Output("w", b.Grad(energy(b, last), w)[0])
		}},
	} {
		var b graph.Builder
		tt.build(&b, leaf(&b, "x", 2), leaf(&b, "y", 2), leaf(&b, "z", 2), weights(&b, "w"), weights(&b, "u"))
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for _, o := range []Options{joinAll, onCPU} {
			p := asAlone(t, tt.name, g, o, rand.New(rand.NewPCG(1, 12)), 1e-5)
			mustBe(t, tt.name+": convolutions", count(p, KindConv2D), tt.forward)
			mustBe(t, tt.name+": gradients", count(p, KindConv2DGradW), tt.gradW)
		}
	}
}

// onCPU are the options of programs for CPUs, as far as joining goes.
var onCPU = Options{Name: "joined", WidenBF16: true, Join: 1 << 20}

// asAlone holds the plan of a graph, in any order that it allows, to the one in which
// nothing is joined, or computed again.
func asAlone(t *testing.T, name string, g *graph.Graph, o Options, r *rand.Rand, tol float64) *Plan {
	t.Helper()
	alone := o
	alone.Join, alone.Apart, alone.Remat = 0, 0, false
	p, q := New(g, o), New(g, alone)
	p.Allocate()
	q.Allocate()
	got, want := inAnyOrder(t, p, r), rounding(t, q, max(o.World, 1), nil)
	for i := range want {
		for k := range want[i].Type.Shape.Len() {
			if a, b := got[i].At(k), want[i].At(k); !(math.Abs(a-b) <= tol*(1+math.Abs(b))) {
				t.Fatalf("%s: result %d, element %d: %v, and %v alone, in\n%s", name, i, k, a, b, dump(t, p))
			}
		}
	}
	return p
}

// inAnyOrder runs a plan in a random order that its dependencies allow.
func inAnyOrder(t *testing.T, p *Plan, r *rand.Rand) []*exec.Tensor {
	t.Helper()
	m, err := newMachine(p, max(p.o.World, 1))
	if err != nil {
		t.Fatalf("%v in\n%s", err, dump(t, p))
	}
	m.start()
	for _, i := range shuffled(r, p.Deps()) {
		if err := m.steps[i](); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return m.logical()
}

// A result that lies among the images of a convolution, in other extents, has one place.
func TestJoinOfResultsSeenOtherwise(t *testing.T) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	w, u := b.Var("w", f(4, 1, 3, 3)), b.Var("u", f(16, 4, 4, 4))
	image := func(name string, channels int) graph.ID { return b.Tanh(b.Var(name, f(2, channels, 4, 4))) }
	first := b.Conv2D(image("p", 1), w, same3)
	one, two := b.Conv2D(image("x", 4), u, graph.NewConv(4, 1, 0)), b.Conv2D(image("y", 4), u, graph.NewConv(4, 1, 0))
	second := b.Conv2D(b.Reshape(one, graph.D(2, 1, 4, 4)), w, same3)
	for i, v := range []graph.ID{first, one, two, second} {
		b.Output(fmt.Sprint(i), v)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{joinAll, onCPU} {
		p := asAlone(t, "seen otherwise", g, o, rand.New(rand.NewPCG(1, 12)), 1e-5)
		mustBe(t, "convolutions", count(p, KindConv2D), 3)
	}
}

// What is joined is no circle; if it were, some of it would be lost without a word.
func TestRebuildOfACircle(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a circle was put in order")
		}
	}()
	d := &dag{Plan: &Plan{}}
	x, y := d.add(Value{}), d.add(Value{})
	l := newLaying(&joining{dag: d})
	l.made = []node{{op: Join{}, in: []int{x}, out: []int{y}}, {op: Join{}, in: []int{y}, out: []int{x}}}
	l.rebuild()
}
