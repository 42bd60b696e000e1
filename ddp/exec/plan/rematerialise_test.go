package plan

import (
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// deep is the gradient of a chain of n rectified and upsampled convolutions.
func deep(t *testing.T, n int) *graph.Graph {
	t.Helper()
	var b graph.Builder
	w := b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
	x := b.Input("x", graph.T(graph.F32, 2, 4, 2, 2))
	for range n {
		x = b.Upsample2D(b.Relu(b.Conv2D(x, w, graph.NewConv(3, 1, 1))), graph.Bilinear, 2)
	}
	loss := b.Sum(b.Square(x))
	b.Assign(w, b.Sub(w, b.Grad(loss, w)[0]))
	b.Output("loss", loss)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func withRemat(t *testing.T, g *graph.Graph, remat bool) *Plan {
	t.Helper()
	p := New(g, Options{Name: "step", World: 1, Remat: remat})
	p.Allocate()
	replay(t, p)
	return p
}

// TestRemat wants the upsampled images of a deep net to be made twice: they
// are most of what a backward pass keeps.
func TestRemat(t *testing.T) {
	g := deep(t, 5)
	plain, lean := withRemat(t, g, false), withRemat(t, g, true)
	t.Logf("%d bytes and %d steps become %d and %d", plain.ArenaBytes, len(plain.Steps), lean.ArenaBytes, len(lean.Steps))
	if lean.ArenaBytes > plain.ArenaBytes*9/10 || len(lean.Steps) <= len(plain.Steps) || len(lean.Steps) > len(plain.Steps)+10 {
		t.Errorf("%d bytes and %d steps, without %d and %d", lean.ArenaBytes, len(lean.Steps), plain.ArenaBytes, len(plain.Steps))
	}
	if a, b := heavy(plain), heavy(lean); a != b {
		t.Errorf("%d convolutions, without %d: they are not to be repeated", b, a)
	}
}

func heavy(p *Plan) (n int) {
	for _, s := range p.Steps {
		switch s.Op.(type) {
		case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW:
			n++
		}
	}
	return n
}

// TestRematNeverRaisesThePeak compares what is in use at the fullest step. Of what all places
// need at least, which it does not look at, it may take a bit more where an array takes no other's
// place any more, and that is rare.
func TestRematNeverRaisesThePeak(t *testing.T) {
	less, more := 0, 0
	for seed := range uint64(300) {
		g, err := random(rand.New(rand.NewPCG(seed, 3)), 60)
		if err != nil {
			t.Fatal(err)
		}
		var peaks [2]int
		var need [2]int64
		for i, remat := range []bool{false, true} {
			p := New(g, Options{Name: "random", World: 1 + int(seed%2), Remat: remat})
			for _, n := range newRematerialisation(p).inUse(p.lives()) {
				peaks[i] = max(peaks[i], n)
			}
			need[i], _ = p.AllocateWithin(1)
		}
		if peaks[1] > peaks[0] {
			t.Errorf("seed %d: the peak rises from %d to %d bytes", seed, peaks[0], peaks[1])
		}
		less, more = less+b2i(need[1] < need[0]), more+b2i(need[1] > need[0])
	}
	if less < 45 || more > 2 {
		t.Errorf("of 300 programs %d need less memory and %d more, want at least 45 and at most 2", less, more)
	}
}

// TestOnly: only a group's instructions for one result remain,
// in their order.
func TestOnly(t *testing.T) {
	add, relu := graph.Binary{Fn: graph.Add}, graph.Unary{Fn: graph.Relu}
	dims := graph.D(4)
	full := NewAccess(dims, dims)
	f := &Fused{DType: graph.F32, Dims: dims, Loads: []Access{full, full, full}, Consts: []float64{5, 7},
		Code:   []Instr{{Op: add, X: 0, Y: 1}, {Op: relu, X: 2}, {Op: add, X: 6, Y: 4}, {Op: relu, X: 5}},
		Stores: []int{8, 7}, Sums: []Reduction{{Fn: graph.ReduceSum, Reg: 5, Access: full}}}
	got, in := f.only(1, []int{10, 11, 12})
	if len(in) != 1 || in[0] != 12 {
		t.Fatalf("operands %v, want 12", in)
	}
	if body := got.body([]string{"z"}, []string{"y"}); body != "\t\tt0 = relu z\n\t\tt1 = add t0 7\n\t\ty = t1\n" {
		t.Errorf("got\n%s", body)
	}
}

// A choice needs what it chooses from, both of it.
func TestOnlyOfAChoice(t *testing.T) {
	full := NewAccess(graph.D(4), graph.D(4))
	f := &Fused{DType: graph.F32, Dims: graph.D(4), Loads: []Access{full, full, full},
		Code:   []Instr{{Op: graph.Unary{Fn: graph.Neg}, X: 0}, {Op: graph.Unary{Fn: graph.Relu}, X: 1}, {Op: graph.Select{}, X: 2, Y: 1, Z: 3}},
		Stores: []int{5, 4}}
	got, _ := f.only(0, []int{10, 11, 12})
	if body := got.body([]string{"x", "y", "z"}, []string{"w"}); body != "\t\tt0 = neg x\n\t\tt1 = select z y t0\n\t\tw = t1\n" {
		t.Errorf("got\n%s", body)
	}
}

// What is computed again is read with the extents that its readers see: the image as itself,
// and as a matrix, twice.
func TestRematOfViews(t *testing.T) {
	c := exectest.Case{Name: "views", Args: []exectest.Arg{{Shape: graph.D(1, 1, 16, 16), Fill: exectest.Normal}, {Shape: graph.D(1, 1, 3, 3), Fill: exectest.Normal}},
		Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			image := b.Upsample2D(x[0], graph.Bilinear, 2)
			y := image
			for range 3 {
				y = b.Conv2D(y, x[1], graph.NewConv(3, 1, 1))
			}
			m := b.Reshape(image, graph.D(32, 32))
			z := b.MatMul(m, b.MatMul(b.Reshape(y, graph.D(32, 32)), m, false, true), false, false)
			return []graph.ID{b.Sum(z), b.Sum(b.Conv2D(image, b.Transpose(x[1], 0, 1, 3, 2), graph.NewConv(3, 1, 1)))}
		}}
	if err := holds(c, Options{Name: c.Name, World: 1, Remat: true}); err != nil {
		t.Error(err)
	}
	g, err := c.Graph(graph.F64, graph.Input)
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, s := range withRemat(t, g, true).Steps {
		again += b2i(s.Kind() == KindUpsample2D)
	}
	if again < 2 {
		t.Errorf("the image is made %d times, want 2", again)
	}
}

// A view of what is computed again shows the same part of it.
func TestRepeatedViewsKeepTheirPlaces(t *testing.T) {
	p := &Plan{Values: []Value{{DType: graph.F32, Dims: graph.D(32), Root: 0}, {DType: graph.F32, Dims: graph.D(16), Root: 0, Off: 64}, {DType: graph.F32, Dims: graph.D(32), Root: 2}, {DType: graph.F32, Dims: graph.D(8), Root: 3}}}
	in := newRematerialisation(p).moved([]int{1, 3, 1, 0}, 0, map[int]int{0: 2})
	view := p.Values[in[0]]
	if view.Root != 2 || view.Off != 64 || view.Dims != graph.D(16) || in[1] != 3 || in[2] != in[0] || in[3] != 2 {
		t.Errorf("got %v, with the view %+v", in, view)
	}
}
