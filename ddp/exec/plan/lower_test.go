package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// A device that computes no bfloat16 has it widened before, and narrowed behind, what computes:
// what only moves elements takes them as they are. Another device has no such steps.
func TestWidened(t *testing.T) {
	var b graph.Builder
	f := func(name string, dims ...int) graph.ID { return b.Input(name, graph.T(graph.BF16, dims...)) }
	x, m := f("x", 2, 4, 6, 6), f("m", 8, 8)
	index := b.Iota(graph.T(graph.I32, 8), 0)
	pooled := b.Apply(graph.MaxPool2D{Window: graph.SquareWindow(2, 2, 0)}, b.Conv2D(x, f("w", 4, 4, 3, 3), same3))
	for i, y := range []graph.ID{
		b.MatMul(m, m, false, true), b.ScatterAdd(m, index, 9), b.Upsample2D(pooled[0], graph.Nearest, 2), b.AvgPool2D(x, graph.SquareWindow(2, 2, 0)), // computed
		b.Gather(m, index), b.Slice(m, 0, 1, 8, 2), b.Pad(m, 1, 1, 2), b.Concat(0, m, m), b.Transpose(m, 1, 0), // moved
	} {
		b.Output(fmt.Sprint(i), y)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	computes := map[Kind]bool{KindConv2D: true, KindMatMul: true, KindScatterAdd: true, KindMaxPool2D: true, KindUpsample2D: true, KindSumPool2D: true}
	for _, widen := range []bool{false, true} {
		p := New(g, Options{Name: "widened", WidenBF16: widen})
		p.Allocate()
		seen := map[Kind]bool{}
		for i := range p.Steps {
			s := &p.Steps[i]
			seen[s.Kind()] = true
			for _, v := range append(append([]int(nil), s.In...), s.Out...) {
				dt := p.Values[v].DType
				if wide := widen && computes[s.Kind()]; s.Kind() != KindCast && dt != graph.I32 && (dt == graph.F32) != wide {
					t.Errorf("widened %v: step %d has %s, in\n%s", widen, i, p.name(v), dump(t, p))
				}
			}
		}
		for kind := range computes {
			if !seen[kind] {
				t.Errorf("there is no %s", kind)
			}
		}
		if seen[KindCast] != widen {
			t.Errorf("widened %v: casts: %v", widen, seen[KindCast])
		}
	}
}

// What travels in parts lies at whole lines on every rank, of elements of any size.
func TestPartsOfAnyTypeAreAligned(t *testing.T) {
	for _, dt := range []graph.DType{graph.BF16, graph.F32, graph.F64} {
		var b graph.Builder
		x := b.Var("x", graph.T(dt, 2*9))
		b.Assign(x, b.AllGather(2, "all", b.Neg(b.ReduceScatter(collective.Mean, 2, "part", x))))
		b.Output("mine", b.Part(2, x))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "parts", World: 2, Rank: 1})
		p.Allocate()
		for i := range p.Steps {
			for _, v := range append(append([]int(nil), p.Steps[i].In...), p.Steps[i].Out...) {
				if _, _, at := p.View(v); at%Align != 0 {
					t.Errorf("%v: step %d has an array at %d, want whole lines, in\n%s", dt, i, at, dump(t, p))
				}
			}
		}
	}
}

// Parts of any length travel to where they belong, whole lines or not: what two ranks gather is
// one behind the other, and each has the sum of its own part.
func TestPartsTravel(t *testing.T) {
	for _, n := range []int{5, 16} { // elements of a part: 20 bytes, and whole lines
		var b graph.Builder
		x, y := b.Input("x", graph.T(graph.F32, n)), b.Input("y", graph.T(graph.F32, 2*n))
		b.Output("all", b.AllGather(2, "all", x))
		b.Output("mine", b.ReduceScatter(collective.Sum, 2, "mine", y))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		comms, all, mine := exectest.NewGroup(2), make([][]float64, 2), make([][]float64, 2)
		errs := make([]error, 2)
		var ranks sync.WaitGroup
		for rank := range 2 {
			ranks.Go(func() {
				p, err := planned{}.Compile(g, exec.Options{Name: "parts", Comm: comms[rank], Vars: &exec.HostVars{}})
				if err != nil {
					errs[rank] = err
					comms[rank].Abort(err)
					return
				}
				for _, in := range []*exec.Tensor{p.Input("x"), p.Input("y")} {
					for i := range in.Type.Shape.Len() {
						in.SetAt(i, float64(100*rank+i))
					}
				}
				errs[rank] = exec.Run(context.Background(), p)
				for i := range 2 * n {
					all[rank] = append(all[rank], p.Output("all").At(i))
				}
				for i := range n {
					mine[rank] = append(mine[rank], p.Output("mine").At(i))
				}
			})
		}
		ranks.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for rank := range 2 {
			for i := range n {
				if a, b, s := all[rank][i], all[rank][n+i], mine[rank][i]; a != float64(i) || b != float64(100+i) || s != float64(100+2*(rank*n+i)) {
					t.Errorf("parts of %d, rank %d, element %d: gathered %v and %v, and a sum of %v", n, rank, i, a, b, s)
				}
			}
		}
	}
}
