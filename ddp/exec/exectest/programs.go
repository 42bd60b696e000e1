package exectest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// programTests are promises of package exec that are not one op's.
var programTests = []struct {
	name string
	run  func(t *testing.T, be exec.Backend, dt graph.DType)
}{
	{"assignments swap", checkSwap},
	{"an output of an assigned variable is its old value", checkOldValue},
	{"steps accumulate", checkAccumulate},
	{"outputs that alias", checkAliases},
	{"a constant assigned", checkConstant},
	{"dead code is not required", checkDead},
	{"an empty graph", checkEmpty},
	{"missing variables", checkMissing},
	{"variables copy", checkVars},
	{"bad indices", checkIndices},
	{"launch and wait", checkLaunch},
	{"runs are queued", checkQueue},
	{"two programs share variables", checkShared},
	{"dumps of equal graphs are equal", checkDump},
}

func runPrograms(t *testing.T, be exec.Backend, dt graph.DType) {
	defer closeBackend(t, be)
	for _, p := range programTests {
		t.Run(p.name, func(t *testing.T) { p.run(t, be, dt) })
	}
}

// program builds a graph, compiles it and returns its session.
func program(t *testing.T, be exec.Backend, vars tensors, f func(b *graph.Builder)) (*session, *graph.Graph) {
	t.Helper()
	g := buildGraph(t, f)
	s, err := openSession(be, g, vars, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.prog.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s, g
}

func buildGraph(t *testing.T, f func(b *graph.Builder)) *graph.Graph {
	t.Helper()
	var b graph.Builder
	f(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (s *session) mustRun(t *testing.T, g *graph.Graph, in tensors) tensors {
	t.Helper()
	out, err := s.run(g, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// numbers is a vector of dt.
func numbers(dt graph.DType, v ...float64) *exec.Tensor {
	t := exec.NewTensor(graph.T(dt, len(v)))
	for i, x := range v {
		t.SetAt(i, x)
	}
	return t
}

// wantNumbers checks the elements of t.
func wantNumbers(t *testing.T, what string, got *exec.Tensor, want ...float64) {
	t.Helper()
	if got == nil || got.Type.Shape.Len() != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i, w := range want {
		if got.At(i) != w {
			t.Errorf("%s, element %d: got %v, want %v", what, i, got.At(i), w)
		}
	}
}

func (s *session) wantVar(t *testing.T, name string, want ...float64) {
	t.Helper()
	v, err := s.vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "variable "+name, v, want...)
}

func checkSwap(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"a": numbers(dt, 1, 2), "b": numbers(dt, 3, 4)}, func(b *graph.Builder) {
		x, y := b.Var("a", graph.T(dt, 2)), b.Var("b", graph.T(dt, 2))
		b.Assign(x, y)
		b.Assign(y, x)
	})
	s.mustRun(t, g, nil)
	s.wantVar(t, "a", 3, 4)
	s.wantVar(t, "b", 1, 2)
	s.mustRun(t, g, nil)
	s.wantVar(t, "a", 1, 2)
}

func checkOldValue(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"a": numbers(dt, 1, 2)}, func(b *graph.Builder) {
		x := b.Var("a", graph.T(dt, 2))
		y := b.Scale(x, 2)
		b.Assign(x, y)
		b.Output("old", x)
		b.Output("new", y)
		b.Output("negated", b.Neg(x))
	})
	out := s.mustRun(t, g, nil)
	wantNumbers(t, "old", out["old"], 1, 2)
	wantNumbers(t, "new", out["new"], 2, 4)
	wantNumbers(t, "negated", out["negated"], -1, -2)
	s.wantVar(t, "a", 2, 4)
}

func checkAccumulate(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"n": numbers(graph.I64, 1<<53), "sum": numbers(dt, 0)}, func(b *graph.Builder) {
		n, sum := b.Var("n", graph.T(graph.I64, 1)), b.Var("sum", graph.T(dt, 1))
		b.Assign(n, b.Add(n, b.Ones(b.Type(n))))
		b.Assign(sum, b.Add(sum, b.Input("x", graph.T(dt, 1))))
	})
	for i := range 4 {
		s.mustRun(t, g, tensors{"x": numbers(dt, float64(i))})
	}
	s.wantVar(t, "sum", 6)
	n, err := s.vars.Get("n")
	if err != nil || n.I64()[0] != 1<<53+4 {
		t.Errorf("counter: got %v (%v), want 2^53+4", n.I64(), err)
	}
}

func checkAliases(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"v": numbers(dt, 5, 6)}, func(b *graph.Builder) {
		x, v := b.Input("x", graph.T(dt, 2)), b.Var("v", graph.T(dt, 2))
		y := b.Neg(x)
		for name, id := range map[string]graph.ID{"x": x, "y": y, "y again": y, "v": v, "c": b.Full(graph.T(dt, 2), 0.5),
			"flat": b.Reshape(x, graph.D(2, 1)), "stopped": b.StopGrad(v)} {
			b.Output(name, id)
		}
	})
	out := s.mustRun(t, g, tensors{"x": numbers(dt, 1, 2)})
	for name, want := range map[string][]float64{"x": {1, 2}, "y": {-1, -2}, "y again": {-1, -2}, "v": {5, 6}, "c": {0.5, 0.5}, "flat": {1, 2}, "stopped": {5, 6}} {
		wantNumbers(t, name, out[name], want...)
	}
	s.prog.Output("x").SetAt(0, 9) // an output's memory is the caller's until the next Launch
	s.prog.Output("v").SetAt(0, 9)
	s.prog.Output("y").SetAt(0, 9)
	s.wantVar(t, "v", 5, 6)
	wantNumbers(t, "input x after writing to output x", s.prog.Input("x"), 1, 2)
	wantNumbers(t, "output y again after writing to output y", s.prog.Output("y again"), -1, -2)
	wantNumbers(t, "y of a second run", s.mustRun(t, g, tensors{"x": numbers(dt, 3, 4)})["y"], -3, -4)
}

func checkConstant(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"a": numbers(dt, 1, 2), "b": numbers(dt, 3, 4)}, func(b *graph.Builder) {
		x := b.Input("x", graph.T(dt, 2))
		b.Assign(b.Var("a", graph.T(dt, 2)), b.Full(graph.T(dt, 2), 7))
		b.Assign(b.Var("b", graph.T(dt, 2)), x)
	})
	s.mustRun(t, g, tensors{"x": numbers(dt, 8, 9)})
	s.wantVar(t, "a", 7, 7)
	s.wantVar(t, "b", 8, 9)
}

func checkDead(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, nil, func(b *graph.Builder) {
		b.Output("y", b.Neg(b.Input("x", graph.T(dt, 1))))
		b.Neg(b.Add(b.Input("unused", graph.T(dt, 1)), b.Var("unset", graph.T(dt, 1))))
		b.Gather(b.Zeros(graph.T(dt, 2)), b.Full(graph.T(graph.I32, 1), 9))
	})
	if s.prog.Input("unused") != nil || s.prog.Input("unset") != nil || s.prog.Input("y") != nil || s.prog.Output("x") != nil {
		t.Error("there is a buffer for what is not a live input or an output")
	}
	wantNumbers(t, "y", s.mustRun(t, g, tensors{"x": numbers(dt, 3)})["y"], -3)
}

func checkEmpty(t *testing.T, be exec.Backend, _ graph.DType) {
	s, g := program(t, be, nil, func(*graph.Builder) {})
	s.mustRun(t, g, nil)
	if n := s.prog.Stats().Nodes; n != 0 {
		t.Errorf("%d nodes, want 0", n)
	}
}

func checkMissing(t *testing.T, be exec.Backend, dt graph.DType) {
	g := buildGraph(t, func(b *graph.Builder) {
		b.Scope("energy", func() { b.Output("y", b.Neg(b.Var("weight", graph.T(dt, 3)))) })
	})
	wrong, other := be.NewVars(), be.NewVars()
	if err := errors.Join(wrong.Set("weight", exec.NewTensor(graph.T(dt, 4))), other.Set("weight", exec.NewTensor(graph.T(graph.I32, 3)))); err != nil {
		t.Fatal(err)
	}
	for name, vars := range map[string]exec.Vars{"no set": nil, "not in the set": be.NewVars(), "wrong shape": wrong, "wrong element type": other} {
		p, err := be.Compile(g, exec.Options{Name: "test", Vars: vars})
		if err == nil {
			t.Errorf("%s: compiled to %v", name, p)
		} else if !strings.Contains(err.Error(), "weight") {
			t.Errorf("%s: the error does not name the variable: %v", name, err)
		}
	}
}

func checkVars(t *testing.T, be exec.Backend, dt graph.DType) {
	v := be.NewVars()
	mine := numbers(dt, 1, 2)
	for _, name := range []string{"b", "a", "b"} {
		if err := v.Set(name, mine); err != nil {
			t.Fatal(err)
		}
	}
	mine.SetAt(0, 9)
	got, err := v.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "a after its source changed", got, 1, 2)
	got.SetAt(0, 9)
	if got, err = v.Get("a"); err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "a after a copy changed", got, 1, 2)
	if names := strings.Join(v.Names(), " "); names != "b a" {
		t.Errorf("names: got %q, want the order of creation", names)
	}
	if typ, ok := v.Type("a"); !ok || typ != mine.Type {
		t.Errorf("type: got %v, %v", typ, ok)
	}
	if _, ok := v.Type("none"); ok {
		t.Error("a variable that does not exist has a type")
	}
	if _, err := v.Get("none"); err == nil {
		t.Error("a variable that does not exist was read")
	}
	if err := v.Set("a", numbers(dt, 1, 2, 3)); err == nil {
		t.Error("a variable changed its type")
	}
}

// checkIndices runs indices that are out of range: each run fails, names op
// and scope, and leaves the program usable.
func checkIndices(t *testing.T, be exec.Backend, dt graph.DType) {
	row, plane := graph.T(dt, 4, 2), graph.T(dt, 1, 1, 2, 2)
	for _, c := range []struct {
		op    string
		build func(b *graph.Builder, idx graph.ID) graph.ID
	}{
		{"gather", func(b *graph.Builder, idx graph.ID) graph.ID {
			return b.Gather(b.Ones(row), b.Reshape(idx, graph.D(1)))
		}},
		{"scatter_add", func(b *graph.Builder, idx graph.ID) graph.ID {
			return b.ScatterAdd(b.Ones(graph.T(dt, 1, 2)), b.Reshape(idx, graph.D(1)), 4)
		}},
		{"planegather", func(b *graph.Builder, idx graph.ID) graph.ID {
			return b.Apply(graph.PlaneGather{}, b.Ones(plane), b.Reshape(idx, graph.D(1, 1, 1, 1)))[0]
		}},
		{"planescatter", func(b *graph.Builder, idx graph.ID) graph.ID {
			return b.Apply(graph.PlaneScatter{H: 2, W: 2}, b.Ones(graph.T(dt, 1, 1, 1, 1)), b.Reshape(idx, graph.D(1, 1, 1, 1)))[0]
		}},
	} {
		t.Run(c.op, func(t *testing.T) {
			s, g := program(t, be, nil, func(b *graph.Builder) {
				b.Scope("model", func() { b.Scope("table", func() { b.Output("y", c.build(b, b.Input("idx", graph.T(graph.I32)))) }) })
			})
			for _, bad := range []float64{4, -1, 1 << 30} {
				idx := exec.NewTensor(graph.T(graph.I32))
				idx.SetAt(0, bad)
				if _, err := s.run(g, tensors{"idx": idx}); err == nil {
					t.Errorf("index %v: no error", bad)
				} else if !strings.Contains(err.Error(), c.op) || !strings.Contains(err.Error(), "model/table") {
					t.Errorf("index %v: the error does not name op and scope: %v", bad, err)
				}
			}
			s.mustRun(t, g, tensors{"idx": exec.NewTensor(graph.T(graph.I32))})
		})
	}
}

func checkLaunch(t *testing.T, be exec.Backend, dt graph.DType) {
	s, _ := program(t, be, nil, func(b *graph.Builder) { b.Output("y", b.Neg(b.Input("x", graph.T(dt, 1)))) })
	ctx := context.Background()
	if err := s.prog.Wait(ctx); err == nil {
		t.Error("Wait without Launch: no error")
	}
	depth := s.prog.Depth()
	if depth < 1 {
		t.Fatalf("the depth is %d, want at least 1", depth)
	}
	for round := range 2 {
		for k := range depth { // the inputs are the run's once Launch has returned
			s.prog.Input("x").SetAt(0, float64(10*round+k))
			if err := s.prog.Launch(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.prog.Launch(ctx); err == nil {
			t.Errorf("a Launch behind %d that nobody has waited for: no error", depth)
		}
		for k := range depth {
			if err := s.prog.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			wantNumbers(t, "y", s.prog.Output("y"), -float64(10*round+k))
		}
	}
	if n := s.prog.Stats().Runs; n != int64(2*depth) {
		t.Errorf("%d runs counted, want %d", n, 2*depth)
	}
}

func checkShared(t *testing.T, be exec.Backend, dt graph.DType) {
	s, g := program(t, be, tensors{"w": numbers(dt, 1)}, func(b *graph.Builder) {
		w := b.Var("w", graph.T(dt, 1))
		b.Assign(w, b.Shift(w, 1))
	})
	read := buildGraph(t, func(b *graph.Builder) { b.Output("w", b.Var("w", graph.T(dt, 1))) })
	p, err := be.Compile(read, exec.Options{Name: "read", Vars: s.vars})
	if err != nil {
		t.Fatal(err)
	}
	reader := &session{vars: s.vars, prog: p}
	s.mustRun(t, g, nil)
	wantNumbers(t, "w read by the other program", reader.mustRun(t, read, nil)["w"], 2)
	if err := s.vars.Set("w", numbers(dt, 10)); err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "w after Set", reader.mustRun(t, read, nil)["w"], 10)
	s.mustRun(t, g, nil)
	wantNumbers(t, "w after both", reader.mustRun(t, read, nil)["w"], 11)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Launch(t.Context()); err == nil {
		t.Error("the other program was launched after its Close")
	}
}

func checkDump(t *testing.T, be exec.Backend, dt graph.DType) {
	dumps := [2]bytes.Buffer{}
	for i := range dumps {
		g, err := Networks()[1].Graph(dt, graph.Input)
		if err != nil {
			t.Fatal(err)
		}
		s, err := openSession(be, g, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.prog.Dump(&dumps[i]); err != nil {
			t.Error(err)
		}
		if err := s.prog.Close(); err != nil {
			t.Error(err)
		}
	}
	if dumps[0].String() != dumps[1].String() || dumps[0].Len() == 0 {
		t.Error("two compilations of equal graphs have different or empty dumps")
	}
}
