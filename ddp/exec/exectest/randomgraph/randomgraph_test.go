package randomgraph_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/randomgraph"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// faulty is the reference with something wrong.
type faulty struct {
	exec.Backend
	change func(g *graph.Graph) (*graph.Graph, error) // before it is compiled
	strike func(g *graph.Graph, p exec.Program)       // after a run
}

type faultyProgram struct {
	exec.Program
	g      *graph.Graph
	strike func(g *graph.Graph, p exec.Program)
}

func (f faulty) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	if f.change != nil {
		var err error
		if g, err = f.change(g); err != nil {
			return nil, err
		}
	}
	p, err := f.Backend.Compile(g, o)
	return faultyProgram{p, g, f.strike}, err
}

func (p faultyProgram) Wait(ctx context.Context) error {
	err := p.Program.Wait(ctx)
	if p.strike != nil {
		p.strike(p.g, p.Program)
	}
	return err
}

// small keeps programs, and the time they take, small.
var small = randomgraph.Limits{Recurrence: 6, Nodes: 80}

// checker holds four ranks of a backend to the reference.
func checker(be exec.Backend) *randomgraph.Checker {
	ranks := []exec.Backend{be, be, be, be}
	return &randomgraph.Checker{Group: exectest.NewGroup, Targets: []randomgraph.Target{{Name: "plain", Ranks: ranks, Bits: "all"}, {Name: "again", Ranks: ranks, Bits: "all"}}}
}

// hunt counts the programs of the first seeds that fail.
func hunt(t *testing.T, c *randomgraph.Checker, programs int, found func(*randomgraph.Found)) int {
	t.Helper()
	failed := 0
	if _, err := c.Hunt(1, programs, time.Time{}, small, func(f *randomgraph.Found) bool {
		failed++
		found(f)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return failed
}

// TestReference: the reference holds to itself.
func TestReference(t *testing.T) {
	hunt(t, checker(ref.New()), 40, func(f *randomgraph.Found) { t.Error(f) })
}

// each applies change to the largest element of every output of floating point.
func each(change func(float64) float64) func(*graph.Graph, exec.Program) {
	return func(g *graph.Graph, p exec.Program) {
		for _, o := range g.Outputs() {
			y := p.Output(o.Name)
			if n := y.Type.Shape.Len(); n > 0 && y.Type.DType.IsFloat() {
				at := 0
				for i := range n {
					if !(math.Abs(y.At(i)) <= math.Abs(y.At(at))) {
						at = i
					}
				}
				y.SetAt(at, change(y.At(at)))
			}
		}
	}
}

// TestFaultsAreFound: a backend that is wrong in one element, or in a bit where
// bits are promised, is found by nearly every program that it is wrong in.
func TestFaultsAreFound(t *testing.T) {
	const all = 20
	programs := all
	if testing.Short() {
		programs = 8
	}
	var runs atomic.Int64
	for _, f := range []struct {
		name  string
		be    faulty
		least int // of 20 programs
	}{
		{"an element is 1 % off", faulty{Backend: ref.New(), strike: each(func(v float64) float64 { return v*1.01 + 0.01 })}, 15},
		{"an element is 0.1 % off", faulty{Backend: ref.New(), strike: each(func(v float64) float64 { return v*1.001 + 0.001 })}, 13},
		{"the sign of the largest", faulty{Backend: ref.New(), strike: each(func(v float64) float64 { return -v })}, 15},
		{"each run differs in the last bit", faulty{Backend: ref.New(), strike: func(g *graph.Graph, p exec.Program) {
			odd := float64(runs.Add(1) % 2) // of the run, not of the output: of two outputs each would always get the same
			each(func(v float64) float64 { return v * (1 + odd*0x1p-7) })(g, p)
		}}, 15},
	} {
		c := checker(f.be)
		found := 0
		for seed := range uint64(programs) {
			p, err := randomgraph.Grow(randomgraph.FromSeed(seed), small)
			if err != nil {
				t.Fatal(err)
			}
			if c.Check(p) != nil {
				found++
			}
		}
		t.Logf("%s: found by %d of %d", f.name, found, programs)
		if found < f.least*programs/all {
			t.Errorf("%s: found by %d of %d programs, want %d", f.name, found, programs, f.least*programs/all)
		}
	}
}

// TestConvolutions: of the programs, enough are networks of images.
func TestConvolutions(t *testing.T) {
	const programs = 60
	convolutions := 0
	for seed := range uint64(programs) {
		p, err := randomgraph.Grow(randomgraph.FromSeed(seed), small)
		if err != nil {
			t.Fatal(err)
		}
		for i, live := range p.Graph.Live() {
			if op := fmt.Sprint(p.Graph.Nodes()[i].Op); live && strings.HasPrefix(op, "conv2d") {
				convolutions++
			}
		}
	}
	if convolutions < programs/5 {
		t.Errorf("%d convolutions in %d programs, want %d", convolutions, programs, programs/5)
	}
}

// TestShrink: a backend whose cosine is wrong fails on the cosine alone.
func TestShrink(t *testing.T) {
	wrong := faulty{Backend: ref.New(), change: func(g *graph.Graph) (*graph.Graph, error) { return replaceCos(g) }}
	least := math.MaxInt
	failed := hunt(t, checker(wrong), 20, func(f *randomgraph.Found) {
		if len(f.Program.Graph.Nodes()) < least {
			least = len(f.Program.Graph.Nodes())
		}
		if text := f.String(); !strings.Contains(text, "cos") || strings.Count(text, "\n") > 12 {
			t.Errorf("what is left is not small, or is no cosine:\n%s", text)
		}
	})
	if failed < 3 || least > 2 {
		t.Errorf("%d of 20 programs failed, the smallest with %d nodes; want 3, and an input with its cosine", failed, least)
	}
}

// replaceCos computes 1.01·cos in place of each cosine.
func replaceCos(g *graph.Graph) (*graph.Graph, error) {
	var b graph.Builder
	ids := make([]graph.ID, g.NumValues())
	for i, n := range g.Nodes() {
		if !g.Live()[i] {
			continue
		}
		in := make([]graph.ID, len(n.In))
		for k, id := range n.In {
			in[k] = ids[id]
		}
		for k, id := range b.Apply(n.Op, in...) {
			if u, ok := n.Op.(graph.Unary); ok && u.Fn == graph.Cos {
				id = b.Scale(id, 1.05)
			}
			ids[n.Out[k]] = id
		}
	}
	for _, o := range g.Outputs() {
		b.Output(o.Name, ids[o.ID])
	}
	for _, a := range g.Assigns() {
		b.Assign(ids[a.Var], ids[a.Value])
	}
	return b.Build()
}

// TestReach: the programs of some seeds have every op of the set, every type,
// empty values, ranks, shards, assignments and gradients of gradients.
func TestReach(t *testing.T) {
	ops, types, seen := map[string]bool{}, map[graph.DType]bool{}, map[string]bool{}
	for seed := range uint64(1500) {
		p, err := randomgraph.Grow(randomgraph.FromSeed(seed), randomgraph.DefaultLimits())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		seen["ranks"] = seen["ranks"] || p.Ranks > 1
		seen["shards"] = seen["shards"] || p.Shards != nil
		seen["assignments"] = seen["assignments"] || len(p.Graph.Assigns()) > 1
		seen["steps"] = seen["steps"] || p.Steps == 3
		seen["three ranks"] = seen["three ranks"] || p.Ranks == 3 && p.State == nil
		seen["shared state"] = seen["shared state"] || len(p.State) > 1
		seen[p.Wild()] = true
		live := p.Graph.Live()
		for i, n := range p.Graph.Nodes() {
			if !live[i] {
				continue
			}
			empty := p.Graph.Type(n.Out[0]).Shape.Len() == 0
			switch op := n.Op.(type) {
			case graph.Leaf:
				ops["Leaf"] = true
				seen["variables of samples"] = seen["variables of samples"] || p.Shards != nil && op.Kind == graph.Var && p.Shards.Split[op.Name]
			case graph.Draw:
				ops["Draw"] = true
				seen["draws in shards"] = seen["draws in shards"] || p.Shards != nil
			case graph.AllReduce:
				ops["AllReduce"] = true
				seen["collectives of bf16"] = seen["collectives of bf16"] || p.Graph.Type(n.Out[0]).DType == graph.BF16
			case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW:
				ops[strings.TrimPrefix(fmt.Sprintf("%T", op), "graph.")] = true
				seen["convolutions of nothing"] = seen["convolutions of nothing"] || empty
			case graph.Unary:
				ops[op.Fn.String()] = true
			case graph.Binary:
				ops[op.Fn.String()] = true
			case graph.Reduce:
				ops[op.Fn.String()] = true
			default:
				ops[strings.TrimPrefix(fmt.Sprintf("%T", op), "graph.")] = true
			}
			for _, id := range n.Out {
				types[p.Graph.Type(id).DType] = true
				seen["empty values"] = seen["empty values"] || p.Graph.Type(id).Shape.Len() == 0
				seen["large values"] = seen["large values"] || p.Graph.Type(id).Shape.Len() > 8000
			}
			seen["second derivatives"] = seen["second derivatives"] || strings.HasSuffix(n.Scope, "''")
			seen["third derivatives"] = seen["third derivatives"] || strings.HasSuffix(n.Scope, "'''")
		}
	}
	var want []string
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		want = append(want, fn.String())
	}
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		want = append(want, fn.String())
	}
	want = append(want, "sum", "max", "Leaf", "Const", "Iota", "Draw", "AllReduce", "ReduceScatter", "AllGather", "Part", "Placed", "StopGrad", "Select", "Reshape", "Broadcast", "Transpose", "Slice", "Pad", "Concat", "Cast",
		"Conv2D", "Conv2DGradX", "Conv2DGradW", "MatMul", "SumPool2D", "SumUnpool2D", "MaxPool2D", "PlaneGather", "PlaneScatter", "Upsample2D", "Upsample2DT", "Gather", "ScatterAdd")
	for _, op := range want {
		if !ops[op] {
			t.Errorf("no program has %s: ops_*.go of this package are to make some", op)
		}
	}
	for _, dt := range []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8} {
		if !types[dt] {
			t.Errorf("no program has %s", dt)
		}
	}
	for _, what := range []string{"ranks", "shards", "assignments", "steps", "empty values", "large values", "second derivatives", "third derivatives",
		"three ranks", "shared state", "variables of samples", "draws in shards", "collectives of bf16", "convolutions of nothing",
		"infinities and NaN", "tiny numbers", "huge numbers"} {
		if !seen[what] {
			t.Errorf("no program has %s", what)
		}
	}
}
