package plan

import (
	"bytes"
	"fmt"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// joinAll joins whatever can be.
var joinAll = Options{Name: "joined", WeightsLast: true, Join: 1 << 30}

// count is how many steps of a kind a plan has.
func count(p *Plan, k Kind) (n int) {
	for i := range p.Steps {
		if p.Steps[i].Kind() == k {
			n++
		}
	}
	return n
}

// convs is how many convolutions the plan of a graph has, and gradients of weights.
func convs(t *testing.T, o Options, build func(b *graph.Builder)) (forward, gradW int) {
	t.Helper()
	var b graph.Builder
	build(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, o)
	p.Allocate()
	return count(p, KindConv2D), count(p, KindConv2DGradW)
}

func mustBe(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

var same3 = graph.NewConv(3, 1, 1)

// leaf is images of 4 channels that a step makes of a variable.
func leaf(b *graph.Builder, name string, n int) graph.ID {
	return b.Tanh(b.Var(name, graph.T(graph.F32, n, 4, 8, 8)))
}

// The networks of a case, which are applied to several batches, are applied once, and so
// are their derivatives.
func TestJoin(t *testing.T) {
	for _, c := range exectest.Networks() {
		if c.Name != "energies of data and of two generated batches" {
			continue
		}
		g, err := c.Graph(graph.F32, graph.Input)
		if err != nil {
			t.Fatal(err)
		}
		o := joinAll
		p, q := New(g, o), New(g, Options{Name: "alone", WeightsLast: true})
		for _, k := range []struct {
			kind        Kind
			alone, with int
		}{{KindConv2D, 4 + 1, 2 + 1}, {KindConv2DGradX, 2 + 3, 1 + 2}, {KindConv2DGradW, 4 + 2, 2 + 1}} {
			mustBe(t, fmt.Sprintf("%s alone", k.kind), count(q, k.kind), k.alone)
			mustBe(t, fmt.Sprintf("%s joined", k.kind), count(p, k.kind), k.with)
		}
		if err := holds(c, o); err != nil {
			t.Error(err)
		}
		return
	}
	t.Fatal("the case is gone")
}

// What depends on another is not joined, nor what would come to by what is joined already.
func TestJoinOfDependents(t *testing.T) {
	chain, _ := convs(t, joinAll, func(b *graph.Builder) {
		w := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
		x := leaf(b, "x", 2)
		for range 3 {
			x = b.Tanh(b.Conv2D(x, w, same3))
		}
		b.Output("y", x)
	})
	mustBe(t, "convolutions of a chain", chain, 3)
	crossed, _ := convs(t, joinAll, func(b *graph.Builder) {
		w, u := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3)), b.Var("u", graph.T(graph.F32, 4, 4, 3, 3))
		x, y := leaf(b, "x", 2), leaf(b, "y", 2)
		x = b.Tanh(b.Conv2D(x, w, same3)) // by w, then by u
		x = b.Tanh(b.Conv2D(x, u, same3))
		y = b.Tanh(b.Conv2D(y, u, same3)) // by u, then by w
		y = b.Tanh(b.Conv2D(y, w, same3))
		b.Output("y", b.Add(x, y))
	})
	mustBe(t, "convolutions of two chains, crossed", crossed, 3)
	_, gradW := convs(t, joinAll, func(b *graph.Builder) {
		w := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
		x := leaf(b, "x", 2)
		for range 3 {
			x = b.Tanh(b.Conv2D(x, w, same3))
		}
		b.Output("g", b.Grad(b.Sum(x), w)[0])
	})
	mustBe(t, "gradients of a chain's weights", gradW, 3)
}

// Images that lie elsewhere are copied where they are little, and else stay.
func TestJoinOfInputs(t *testing.T) {
	build := func(channels int) func(b *graph.Builder) {
		return func(b *graph.Builder) {
			w := b.Var("w", graph.T(graph.F32, 32, channels, 3, 3))
			for _, name := range []string{"x", "y"} {
				x := b.Var(name, graph.T(graph.F32, 2, channels, 8, 8)) // in channels-last order, with WeightsLast
				b.Output(name, b.Sum(b.Tanh(b.Conv2D(x, w, same3))))
			}
		}
	}
	few, _ := convs(t, joinAll, build(4))
	mustBe(t, "convolutions of small variables", few, 1)
	many, _ := convs(t, joinAll, build(16))
	mustBe(t, "convolutions of large variables", many, 2)
}

// What a collective makes lies in its bucket, and so stays there.
func TestJoinOfWhatTravels(t *testing.T) {
	o := joinAll
	o.World = 2
	n, _ := convs(t, o, func(b *graph.Builder) {
		w := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
		x := b.AllReduce(collective.Sum, "images", leaf(b, "x", 2), leaf(b, "y", 2))
		b.Output("y", b.Sum(b.Add(b.Conv2D(x[0], w, same3), b.Conv2D(x[1], w, same3))))
	})
	mustBe(t, "convolutions of what was reduced", n, 2)
}

// What shares no weights, geometry or type stays apart, and so do large images and
// programs that promise bits.
func TestJoinStays(t *testing.T) {
	two := func(b *graph.Builder) {
		w := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
		b.Output("y", b.Add(b.Sum(b.Conv2D(leaf(b, "x", 2), w, same3)), b.Sum(b.Conv2D(leaf(b, "y", 3), w, same3))))
	}
	n, _ := convs(t, joinAll, two)
	mustBe(t, "convolutions of 2 and 3 images", n, 1)
	for name, change := range map[string]func(o *Options){
		"deterministic": func(o *Options) { o.Deterministic = true },
		"more elements": func(o *Options) { o.Join = 5*4*64 - 1 },
		"none":          func(o *Options) { o.Join = 0 },
	} {
		o := joinAll
		change(&o)
		n, _ := convs(t, o, two)
		mustBe(t, name, n, 2)
	}
	n, _ = convs(t, joinAll, func(b *graph.Builder) {
		w, u := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3)), b.Var("u", graph.T(graph.F32, 4, 4, 3, 3))
		x, y := leaf(b, "x", 2), leaf(b, "y", 2)
		wide := graph.NewConv(3, 1, 2)
		b.Output("weights", b.Sum(b.Conv2D(x, u, same3)))
		b.Output("geometry", b.Sum(b.Conv2D(x, w, wide)))
		b.Output("one", b.Sum(b.Conv2D(y, w, same3)))
		b.Output("size", b.Sum(b.Conv2D(b.AvgPool2D(y, graph.SquareWindow(2, 2, 0)), w, same3)))
	})
	mustBe(t, "convolutions that differ", n, 4)
}

// An image that convolutions by two weights read lies in one place for both.
func TestJoinOfHeads(t *testing.T) {
	n, gradW := convs(t, joinAll, func(b *graph.Builder) {
		w, u := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3)), b.Var("u", graph.T(graph.F32, 8, 4, 3, 3))
		loss := b.Full(graph.T(graph.F32), 0)
		for _, x := range []graph.ID{leaf(b, "x", 2), leaf(b, "y", 2), leaf(b, "z", 2)} {
			loss = b.Add(loss, b.Sum(b.Square(b.Conv2D(x, w, same3))))
			loss = b.Add(loss, b.Sum(b.Square(b.Conv2D(x, u, same3))))
		}
		for i, g := range b.Grad(loss, w, u) {
			b.Output(fmt.Sprint(i), g)
		}
	})
	mustBe(t, "convolutions of two heads", n, 2)
	mustBe(t, "gradients of their weights", gradW, 2)
}

// A joined image in bfloat16 does not take the place of an array in float32 of which a part
// of it is made: both have as many bytes, but a number lies where another was.
func TestJoinOfHalves(t *testing.T) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	w, k := b.Var("w", f(4, 1, 3, 3)), b.Var("k", f(64, 64))
	for _, name := range []string{"x", "y"} {
		noise := b.Reshape(b.MatMul(b.Input(name+" noise", f(2, 64)), k, false, false), graph.D(2, 1, 8, 8)) // stays float32
		b.Output(name, b.Conv2D(b.Tanh(b.Add(b.Input(name, f(2, 1, 8, 8)), noise)), w, same3))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	o, alone := joinAll, Options{Name: "alone", WeightsLast: true, BF16Images: true}
	o.BF16Images = true
	p, q := New(g, o), New(g, alone)
	p.Allocate()
	q.Allocate()
	mustBe(t, "convolutions", count(p, KindConv2D), 1)
	got, want := rounding(t, p, 1, nil), rounding(t, q, 1, nil)
	for i := range want {
		if !bytes.Equal(got[i].Bytes(), want[i].Bytes()) {
			t.Errorf("the results for %s differ from those alone, in\n%s", p.Outputs[i].Name, dump(t, p))
		}
	}
}
