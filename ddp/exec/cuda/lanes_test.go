package cuda

import (
	"fmt"
	"slices"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// branches are convolutions that nothing orders.
func branches() *graph.Graph {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 2, 3, 5, 5))
	for k := range 4 {
		w := b.Input(fmt.Sprint("w", k), graph.T(graph.F32, 4, 3, 3, 3))
		b.Output(fmt.Sprint("y", k), b.Apply(graph.Conv2D{Conv: graph.NewConv(3, 1, 1)}, x, w)[0])
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// TestLibrariesOnLanes: cuDNN's convolutions on several streams are captured once they
// have been on each, since what it needs for a stream is made at its first run there; and
// no handle is made later.
func TestLibrariesOnLanes(t *testing.T) {
	m := cudatest.Use(t)
	var want []float32
	for _, graphs := range []Graphs{GraphsOff, GraphsOn} {
		b, err := New(Config{Graphs: graphs, Lanes: 4})
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Compile(branches(), exec.Options{Name: "branches", Deterministic: true}) // the libraries' first candidates
		if err != nil {
			t.Fatal(err)
		}
		used := map[int]bool{}
		for i, u := range p.(*program).units {
			if _, ok := u.work.(*heavy); ok {
				used[p.(*program).side.lane[i]] = true
			}
		}
		if len(used) != 4 {
			t.Fatalf("convolutions are on lanes %v, want 4 of them", used)
		}
		for n := range 4 {
			for k := range 4 {
				w := p.Input(fmt.Sprint("w", k)).F32()
				for i := range w {
					w[i] = float32((i+k)%7)/7 - 0.4
				}
			}
			for i := range p.Input("x").F32() {
				p.Input("x").F32()[i] = float32(i%11)/11 - 0.5
			}
			handles := m.Calls("cudnnCreate")
			if err := exec.Run(t.Context(), p); err != nil {
				t.Fatalf("run %d: %v", n, err)
			}
			if made := m.Calls("cudnnCreate") - handles; n > 1 && made > 0 {
				t.Errorf("run %d made %d handles", n, made)
			}
			var got []float32
			for k := range 4 {
				got = append(got, p.Output(fmt.Sprint("y", k)).F32()...)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("run %d: other bits", n)
			}
		}
		if replayed := p.(*program).replayed() != nil; replayed != (graphs == GraphsOn) {
			t.Errorf("captured: %v", replayed)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	m.Clean()
}
