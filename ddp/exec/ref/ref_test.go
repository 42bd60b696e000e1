package ref_test

import (
	"context"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

func build(t *testing.T, f func(b *graph.Builder)) *graph.Graph {
	t.Helper()
	var b graph.Builder
	f(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestVars(t *testing.T) {
	v := ref.New().NewVars()
	w := exec.NewTensor(graph.T(graph.F32, 2))
	w.F32()[1] = 3
	if err := v.Set("w", w); err != nil {
		t.Fatal(err)
	}
	w.F32()[1] = 4 // Set copies
	got, err := v.Get("w")
	if err != nil || got.F32()[1] != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if err := v.Set("w", exec.NewTensor(graph.T(graph.F32, 3))); err == nil || !strings.Contains(err.Error(), `variable "w" is f32[2] and cannot be set to f32[3]`) {
		t.Errorf("set of another type: %v", err)
	}
	if _, err := v.Get("u"); err == nil || !strings.Contains(err.Error(), `no variable "u"`) {
		t.Errorf("get of a missing variable: %v", err)
	}
	if typ, ok := v.Type("w"); !ok || typ != w.Type {
		t.Errorf("type %v, %v", typ, ok)
	}
	if _, ok := v.Type("u"); ok {
		t.Error("a variable that was not set has a type")
	}
	if names := v.Names(); len(names) != 1 || names[0] != "w" {
		t.Errorf("names %v", names)
	}
}

func TestFlops(t *testing.T) {
	g := build(t, func(b *graph.Builder) {
		x, w := b.Input("x", graph.T(graph.F32, 2, 3, 5, 5)), b.Input("w", graph.T(graph.F32, 4, 3, 3, 3))
		y := b.Conv2D(x, w, graph.NewConv(3, 1, 1))
		for i, d := range b.Grad(b.Sum(b.Square(y)), x, w) {
			b.Output([]string{"dx", "dw"}[i], d)
		}
		b.Output("z", b.MatMul(b.Input("p", graph.T(graph.F32, 7, 2)), b.Input("q", graph.T(graph.F32, 7, 3)), true, false))
	})
	p, err := ref.New().Compile(g, exec.Options{Name: "p", Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int64{"Conv2D": 10800, "Conv2DGradX": 10800, "Conv2DGradW": 10800, "MatMul": 84, "Unary": 0} {
		if got := p.Stats().Ops[kind].Flops; got != want {
			t.Errorf("%s: %d flops, want %d", kind, got, want)
		}
	}
}

// foreignVars is a set of variables of another backend.
type foreignVars struct{ exec.Vars }

func TestCompileErrors(t *testing.T) {
	g := build(t, func(b *graph.Builder) { b.Output("y", b.Neg(b.Var("w", graph.T(graph.F32, 2)))) })
	wrong := ref.New().NewVars()
	if err := wrong.Set("w", exec.NewTensor(graph.T(graph.F64, 2))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		vars exec.Vars
		want string
	}{
		{"none", nil, `program "p": var "w": the graph has variables, and none were given`},
		{"missing", ref.New().NewVars(), `program "p": var "w": the variable is not set; want f32[2]`},
		{"type", wrong, `program "p": var "w": the variable is f64[2], want f32[2]`},
		{"foreign", foreignVars{}, "belong to another backend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ref.New().Compile(g, exec.Options{Name: "p", Vars: c.vars})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestProgramOrder(t *testing.T) {
	g := build(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(graph.F32, 2))
		b.Input("dead", graph.T(graph.F32, 2))
		b.Output("y", b.Neg(x))
	})
	p, err := ref.New().Compile(g, exec.Options{Name: "p", Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if p.Input("dead") != nil || p.Input("none") != nil || p.Output("none") != nil {
		t.Error("an input or output that is not in the live graph has a buffer")
	}
	if err := p.Wait(ctx); err == nil {
		t.Error("Wait without Launch: no error")
	}
	p.Input("x").F32()[0] = 2
	if err := p.Launch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Launch(ctx); err == nil {
		t.Error("second Launch: no error")
	}
	if err := p.Wait(ctx); err != nil || p.Output("y").F32()[0] != -2 {
		t.Errorf("got %v, %v", p.Output("y").F32(), err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := exec.Run(ended, p); err == nil {
		t.Error("run with an ended context: no error")
	}
	if s := p.Stats(); s.Runs != 1 || s.Nodes != 2 || s.Ops["Unary"].Calls != 1 {
		t.Errorf("stats %+v", s)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
