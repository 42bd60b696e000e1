package plan

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// trained runs a plan some times and returns what is left.
func trained(t *testing.T, p *Plan, world, runs int) []*exec.Tensor {
	t.Helper()
	p.Allocate()
	m, err := newMachine(p, world)
	if err != nil {
		t.Fatalf("%v in\n%s", err, dump(t, p))
	}
	m.start()
	for range runs {
		for i, run := range m.steps {
			if err := run(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
	}
	return m.logical()
}

// TestWeightsLast: random graphs, and a training step with Adam and buckets, compute
// the same with weights in either order, of the program and of single variables.
func TestWeightsLast(t *testing.T) {
	orders := map[string]Options{
		"chosen": {},
		"fixed": {VarLast: func(name string) (last, fixed bool) {
			return !strings.HasSuffix(name, "1") && !strings.HasSuffix(name, ".m"), true
		}},
		"some": {VarLast: func(name string) (last, fixed bool) { return false, name == "w" || strings.HasSuffix(name, "0") }},
	}
	rank4 := func(p *Plan) map[string]bool {
		is := map[string]bool{}
		for _, e := range p.Vars {
			is[e.Name] = e.Type.Shape.Rank() == 4
		}
		return is
	}
	same := func(name string, g *graph.Graph, world int) {
		plain := New(g, Options{Name: name, World: world})
		is := rank4(plain)
		want := trained(t, plain, world, 2)
		for order, o := range orders {
			o.Name, o.World, o.WeightsLast = name, world, true
			if fixed := o.VarLast; fixed != nil {
				o.VarLast = func(name string) (bool, bool) {
					last, f := fixed(name)
					return last && is[name], f
				}
			}
			p := New(g, o)
			for _, e := range p.Vars {
				last, fixed := false, false
				if o.VarLast != nil {
					last, fixed = o.VarLast(e.Name)
				}
				if fixed && p.Values[e.Value].Last != last {
					t.Fatalf("%s, %s: variable %q is channels-last: %v, want what was fixed", name, order, e.Name, !last)
				}
			}
			for i, got := range trained(t, p, world, 2) {
				for k := range got.Type.Shape.Len() {
					if a, b := got.At(k), want[i].At(k); !(math.Abs(a-b) <= 1e-3*(1+math.Abs(b))) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
						t.Fatalf("%s, %s: result %d, element %d: got %v, want %v\n%s", name, order, i, k, a, b, dump(t, p))
					}
				}
			}
		}
	}
	same("step", step(t), 2)
	for seed := range uint64(40) {
		g, err := random(rand.New(rand.NewPCG(seed, 7)), 5+int(seed)%30)
		if err != nil {
			t.Fatal(err)
		}
		same(fmt.Sprint("random ", seed), g, 1)
	}
	for _, c := range exectest.Networks() {
		if err := holds(c, Options{Name: c.Name, World: 1, WeightsLast: true}); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// TestWeightsLastMovesNothing: a step has no transposition of weights, gradients or
// moments, and one of its images, which come row-major; without being asked, plans
// are as they were.
func TestWeightsLastMovesNothing(t *testing.T) {
	p := New(step(t), Options{Name: "step", World: 2, WeightsLast: true})
	p.Allocate()
	for _, e := range p.Vars {
		if want := e.Type.Shape.Rank() == 4; p.Values[e.Value].Last != want {
			t.Errorf("variable %q of %v is channels-last: %v, want %v", e.Name, e.Type, !want, want)
		}
	}
	plain := dump(t, compile(t, step(t), 2))
	mustCount(t, string(dump(t, p)), map[string]int{"= transpose": strings.Count(string(plain), "= transpose")})
	if bytes.Contains(plain, []byte("f32[4,3,3,3]nhwc")) {
		t.Error("weights are channels-last unasked")
	}
}

// TestNumbersTieNothing: a sum over images that is spread over weights, as the gradient
// of a norm of weights that divides an image, turns neither.
func TestNumbersTieNothing(t *testing.T) {
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 2, 3, 5, 5)), b.Var("w", graph.T(graph.F32, 4, 3, 3, 3))
	y := b.Conv2D(x, w, graph.NewConv(3, 1, 1))
	norm := b.Sum(b.Square(w))
	loss := b.Sum(b.Square(b.Tanh(b.Div(y, b.BroadcastTo(norm, b.Shape(y))))))
	b.Assign(w, b.Sub(w, b.Scale(b.Grad(loss, w)[0], 0.1)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	mustCount(t, string(dump(t, compile(t, g, 1))), map[string]int{"= transpose": 1, "f32[4,3,3,3]nhwc": 0})
}
