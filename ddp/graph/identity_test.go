package graph_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// application is an op on inputs, to be made again.
type application struct {
	op graph.Op
	in []graph.ID
}

// nearlyEqual are computations that differ in one small thing each, made of
// the matrices x, y, the vector vec, the images im, the places idx and the draws' key.
func nearlyEqual(x, y, vec, im, idx, key graph.ID) []application {
	var all []application
	add := func(op graph.Op, in ...graph.ID) { all = append(all, application{op, in}) }
	num := math.Float64bits
	numbers := []float64{0, math.Copysign(0, -1), 1, math.Nextafter(1, 2), math.Nextafter(1, 0), -1, 5e-324, math.Inf(1), math.Inf(-1), 0.1, 0.1 + 0x1p-56}
	for _, v := range numbers {
		add(graph.Unary{Fn: graph.Scale, Bits: num(v)}, x)
		add(graph.Unary{Fn: graph.Shift, Bits: num(v)}, x)
		for _, fn := range []graph.UnaryFn{graph.PowC, graph.LeakyRelu, graph.LeakyStep, graph.Elu, graph.EluD, graph.EluDD} {
			add(graph.Unary{Fn: fn, Bits: num(v)}, x)
		}
		add(graph.Const{Type: graph.T(graph.F32, 512), Bits: num(v)})
		add(graph.Const{Type: graph.T(graph.F64, 512), Bits: num(v)})
		add(graph.Const{Type: graph.T(graph.F32, 512, 1), Bits: num(v)})
	}
	for start := 0; start < 512; start += 256 {
		for _, step := range []int{1, 2} {
			add(graph.Slice{Start: graph.D(start, 0), Limit: graph.D(start+256, 512), Step: graph.D(step, 1)}, x)
			add(graph.Slice{Start: graph.D(0, start), Limit: graph.D(512, start+256), Step: graph.D(1, step)}, x)
		}
	}
	for _, p := range []philox.Purpose{1, 2} {
		for sub := range uint16(3) {
			for _, d := range []graph.Dist{graph.Normal, graph.Uniform, graph.Rademacher} {
				add(graph.Draw{Dist: d, Purpose: p, Sub: sub, Type: graph.T(graph.F32, 4)}, key)
				add(graph.Draw{Dist: d, Purpose: p, Sub: sub, Type: graph.T(graph.F32, 4, 1)}, key)
			}
		}
	}
	for _, in := range [][]graph.ID{{x, y}, {y, x}, {x, y, x}, {x, x, y}, {x, y, x, y}, {x, y, y, x}, {x, y, x, y, x}, {x, y, x, x, y}, {x, y, x, y, y}} {
		add(graph.Concat{Axis: 0}, in...)
		add(graph.Concat{Axis: 1}, in...)
		add(graph.AllReduce{Op: collective.Sum, Label: "a"}, in...)
		add(graph.AllReduce{Op: collective.Sum, Label: "b"}, in...)
		add(graph.AllReduce{Op: collective.Mean, Label: "a"}, in...)
	}
	for world := 1; world <= 2; world++ {
		for _, label := range []string{"a", "b"} {
			add(graph.ReduceScatter{Op: collective.Sum, World: world, Label: label}, vec)
			add(graph.ReduceScatter{Op: collective.Mean, World: world, Label: label}, vec)
			add(graph.AllGather{World: world, Label: label}, vec)
		}
		add(graph.Part{World: world}, vec)
		add(graph.Placed{World: world}, vec)
	}
	for _, tx := range []bool{false, true} {
		for _, ty := range []bool{false, true} {
			add(graph.MatMul{TransX: tx, TransY: ty}, x, y)
		}
	}
	win := graph.SquareWindow(2, 2, 0)
	wider := win
	wider.PadB = 1
	for _, w := range []graph.Window{win, graph.SquareWindow(2, 1, 0), graph.SquareWindow(2, 2, 1), wider} {
		add(graph.SumPool2D{Window: w}, im)
		add(graph.MaxPool2D{Window: w}, im)
	}
	for axes := range uint8(4) {
		add(graph.Reduce{Fn: graph.ReduceSum, Axes: axes}, x)
		add(graph.Reduce{Fn: graph.ReduceMax, Axes: axes}, x)
	}
	for rows := 511; rows < 514; rows++ {
		add(graph.ScatterAdd{Rows: rows}, x, idx)
	}
	add(graph.Gather{}, x, idx)
	add(graph.Gather{}, y, idx)
	return all
}

// TestText: computations that differ have different text, or ranks would not see that their
// programs differ.
func TestText(t *testing.T) {
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, 512, 512)), b.Input("y", graph.T(graph.F32, 512, 512))
	all := nearlyEqual(x, y, b.Input("vec", graph.T(graph.F32, 4)), b.Input("im", graph.T(graph.F32, 1, 1, 6, 6)), b.Input("idx", graph.T(graph.I32, 512)), b.Input("key", graph.KeyType))
	texts := map[string]bool{}
	for _, a := range all {
		text := fmt.Sprint(a.op, a.in)
		for _, out := range b.Apply(a.op, a.in...) {
			text += b.Type(out).String()
		}
		if texts[text] {
			t.Errorf("two computations are %s", text)
		}
		texts[text] = true
	}
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	made := map[string]graph.Op{}
	for i := range 13 { // one number of the geometry differs
		n := [13]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		n[i] = 99
		w := graph.Window{KH: n[0], KW: n[1], StrideH: n[2], StrideW: n[3], PadT: n[4], PadB: n[5], PadL: n[6], PadR: n[7], DilH: n[8], DilW: n[9]}
		conv := graph.Conv{Window: w, Groups: n[10]}
		for _, op := range []graph.Op{
			graph.Conv2D{Conv: conv}, graph.Conv2DGradW{Conv: conv}, graph.Conv2DGradX{Conv: conv, H: n[11], W: n[12]},
			graph.SumPool2D{Window: w}, graph.MaxPool2D{Window: w}, graph.SumUnpool2D{Window: w, H: n[11], W: n[12]},
			graph.PlaneScatter{H: n[11], W: n[12]},
		} {
			if old, ok := made[op.String()]; ok && old != op {
				t.Errorf("%#v and %#v are both %s", old, op, op)
			}
			made[op.String()] = op
		}
	}
}

// TestIdentity makes 200,000 computations that all differ, some by one bit:
// none may merge with another; made again, each must merge with itself.
func TestIdentity(t *testing.T) {
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, 512, 512)), b.Input("y", graph.T(graph.F32, 512, 512))
	all := nearlyEqual(x, y, b.Input("vec", graph.T(graph.F32, 4)), b.Input("im", graph.T(graph.F32, 1, 1, 6, 6)), b.Input("idx", graph.T(graph.I32, 512)), b.Input("key", graph.KeyType))
	tricky := len(all)
	for i := len(all); i < 200_000; i++ {
		switch op := (graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(1) + uint64(i)}); i % 4 {
		case 0: // neighbours in float64
			all = append(all, application{op, []graph.ID{x}})
		case 1:
			all = append(all, application{op, []graph.ID{y}})
		case 2: // ever other first lines and lengths
			s := graph.Slice{Start: graph.D(i/4%500, i/2000%500), Limit: graph.D(i/4%500+7, 512), Step: graph.D(1, 1+i/1_000_000)}
			all = append(all, application{s, []graph.ID{x}})
		default: // the third input and beyond differ
			in := []graph.ID{x, x, x}
			for bit := range 18 {
				in = append(in, []graph.ID{x, y}[i>>bit&1])
			}
			all = append(all, application{graph.Concat{Axis: 0}, in})
		}
	}
	made := map[graph.ID]int{}
	first := make([]graph.ID, len(all))
	for i, a := range all {
		out := b.Apply(a.op, a.in...)
		if b.Err() != nil {
			t.Fatalf("%d: %v", i, b.Err())
		}
		if j, ok := made[out[0]]; ok {
			t.Fatalf("%v%v and %v%v have merged", all[j].op, all[j].in, a.op, a.in)
		}
		made[out[0]], first[i] = i, out[0]
	}
	for i, a := range all {
		if out := b.Apply(a.op, append([]graph.ID(nil), a.in...)...); out[0] != first[i] {
			t.Fatalf("%v%v was made twice", a.op, a.in)
		}
	}
	t.Logf("%d computations, %d of them hand-made", len(all), tricky)
}

// TestScale builds and differentiates a graph of 100,000 nodes, whose gradient has a few
// times as many. The time is logged; only a hang fails.
func TestScale(t *testing.T) {
	start := time.Now()
	var b graph.Builder
	x := b.Var("x", graph.T(graph.F32, 8, 8))
	h, nodes := x, 100_000
	for i := 0; b.NumNodes() < nodes; i++ {
		b.Scope(fmt.Sprintf("layer%d", i), func() {
			h = b.Tanh(b.MatMul(b.Shift(b.Mul(h, x), float64(i)), x, false, i%2 == 0))
		})
	}
	built := time.Since(start)
	n := b.NumNodes()
	b.Output("g", b.Grad(b.Sum(h), x)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	t.Logf("%d nodes built in %v, %d with their gradient in %v", n, built, len(g.Nodes()), took)
	if all := len(g.Nodes()); all > 5*n {
		t.Errorf("%d nodes have %d with their gradient, want %d at most", n, all, 5*n)
	}
}

// TestCommutative holds x+y and y+x to be one node, x−y and y−x two.
func TestCommutative(t *testing.T) {
	var b graph.Builder
	x, y := b.Input("x", graph.T(graph.F32, 3)), b.Input("y", graph.T(graph.F32, 3))
	for _, c := range []struct {
		name string
		f    func(x, y graph.ID) graph.ID
		same bool
	}{
		{"add", b.Add, true}, {"mul", b.Mul, true}, {"max", b.Max, true}, {"min", b.Min, true}, {"equal", b.Equal, true},
		{"sub", b.Sub, false}, {"div", b.Div, false}, {"greater", b.Greater, false},
	} {
		if same := c.f(x, y) == c.f(y, x); same != c.same {
			t.Errorf("%s: x,y and y,x the same node: %v, want %v", c.name, same, c.same)
		}
	}
}

// A node's lists are its own: neither the caller's list nor those of other nodes share memory
// with them.
func TestListsAreOwn(t *testing.T) {
	var b graph.Builder
	x, y := b.Input("x", scalar), b.Input("y", scalar)
	in := []graph.ID{x, y}
	first := b.Apply(graph.Binary{Fn: graph.Sub}, in...)[0]
	in[0], in[1] = y, x
	second := b.Sin(first)
	_ = append(b.Node(first).In, y, y, y, y)
	_ = append(b.Node(first).Out, y, y, y, y)
	if got, want := fmt.Sprint(b.Node(first).In, b.Node(first).Out, b.Node(second).In, b.Node(second).Out), fmt.Sprintf("[%d %d] [%d] [%d] [%d]", x, y, first, first, second); got != want {
		t.Errorf("the nodes are %s, want %s", got, want)
	}
}

// All of the ID of a fourth input tells nodes apart, not its lowest byte or two.
func TestFarInputs(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 1))
	first := b.Shift(x, 1)
	for i := 2; i <= 1<<16+1; i++ {
		b.Shift(x, float64(i))
	}
	made := map[graph.ID]graph.ID{}
	for _, far := range []graph.ID{0, 1, 1 << 8, 1 << 16} {
		id := b.Concat(0, x, x, x, first+far)
		if old, ok := made[id]; ok || b.Err() != nil {
			t.Errorf("inputs %d and %d give one node (%v)", old, first+far, b.Err())
		}
		made[id] = first + far
	}
}

// TestNothingMade: what changes nothing makes no node, and a reshape of a reshape is one.
func TestNothingMade(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 2, 3))
	for name, y := range map[string]graph.ID{
		"−(−x)": b.Neg(b.Neg(x)), "no axes": b.MaxKeep(x), "1·x": b.Scale(x, 1), "x + 0": b.Shift(x, 0), "x¹": b.Pow(x, 1),
		"its own shape": b.BroadcastTo(b.Reshape(x, b.Shape(x)), b.Shape(x)), "reshaped and back": b.Reshape(b.Reshape(x, graph.D(6)), b.Shape(x)),
		"all of it": b.Slice(x, 1, 0, 3, 1), "one part": b.Concat(1, x), "its own type": b.Cast(x, graph.F32),
	} {
		if y != x {
			t.Errorf("%s: a node is made, %s", name, b.Node(y).Op)
		}
	}
	if y := b.Reshape(b.Reshape(x, graph.D(6)), graph.D(3, 2)); b.Node(y).In[0] != x {
		t.Errorf("a reshape of a reshape is one of %s", b.Node(b.Node(y).In[0]).Op)
	}
}
