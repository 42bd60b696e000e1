package plan

import (
	"math"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// What a collective takes keeps its number for all else that reads it, though it is reduced
// where it lies: for a variable that is assigned it, for another collective, for a second
// place in the same one. The outputs and the variable of two ranks that compute the same
// are multiples of y = eˣ, or of 3.
func TestWhatTravelsStays(t *testing.T) {
	const n = 16
	vector := graph.T(graph.F64, n)
	sum := func(b *graph.Builder, xs ...graph.ID) []graph.ID { return b.AllReduce(collective.Sum, "sum", xs...) }
	for _, tt := range []struct {
		name  string
		build func(b *graph.Builder, y, v graph.ID) []graph.ID // outputs; of those of parts, the first has zeros elsewhere
		want  []float64                                        // times y: the outputs, then the variable
	}{
		{"it is assigned", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			b.Assign(v, y)
			return sum(b, y)
		}, []float64{2, 1}},
		{"for a variable alone", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			b.Assign(v, sum(b, y)[0])
			return nil
		}, []float64{2}},
		{"twice in one", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			out := sum(b, y, y)
			b.Assign(v, out[1])
			return out
		}, []float64{2, 2, 2}},
		{"in two", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			mean := b.AllReduce(collective.Mean, "mean", y)[0]
			b.Assign(v, mean)
			return append(sum(b, y), mean)
		}, []float64{2, 1, 1}},
		{"a number beside it", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			out := sum(b, b.Full(vector, 3), y)
			b.Assign(v, b.Mul(out[0], y))
			return out[1:]
		}, []float64{2, 6}},
		{"again and again", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			four := sum(b, sum(b, y)...)[0]
			b.Assign(v, b.Sub(four, y))
			return []graph.ID{four, b.Neg(y)}
		}, []float64{4, -1, 3}},
		{"a part of it", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			half := sum(b, b.Part(2, y))[0]
			b.Assign(v, b.Sub(b.Concat(0, half, half), b.Concat(0, half, half)))
			return []graph.ID{b.Sub(b.Placed(2, half), b.Placed(2, b.Part(2, y))), y}
		}, []float64{1, 1, 0}},
		{"a part of what comes", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			all := sum(b, y)[0]
			b.Assign(v, b.Neg(all))
			return []graph.ID{b.Placed(2, b.Part(2, all))}
		}, []float64{2, -2}},
		{"a part of what nothing else reads", func(b *graph.Builder, y, v graph.ID) []graph.ID {
			half := sum(b, b.Part(2, b.Neg(y)))[0]
			b.Assign(v, y)
			return []graph.ID{b.Placed(2, half)}
		}, []float64{-2, 1}},
	} {
		for rank := range 2 {
			var b graph.Builder
			for i, out := range tt.build(&b, b.Exp(b.Input("x", vector)), b.Var("v", vector)) {
				b.Output(string(rune('a'+i)), out)
			}
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			x, got := runAlike(t, g, rank)
			if len(got) != len(tt.want) {
				t.Fatalf("%s: %d results, want %d", tt.name, len(got), len(tt.want))
			}
			for k, v := range got {
				for i := range n {
					want := tt.want[k] * math.Exp(x.At(i))
					if strings.HasPrefix(tt.name, "a part") && k == 0 && i/(n/2) != rank {
						want = 0
					}
					if !(math.Abs(v.At(i)-want) <= 1e-12) {
						t.Errorf("%s, rank %d: result %d is %v at %d, want %v", tt.name, rank, k, v.At(i), i, want)
					}
				}
			}
		}
	}
}

// runAlike is the first input of a program of two ranks that compute the same, and its
// outputs and variables after a run.
func runAlike(t *testing.T, g *graph.Graph, rank int) (x *exec.Tensor, results []*exec.Tensor) {
	t.Helper()
	p := New(g, Options{World: 2, Rank: rank})
	p.Allocate()
	m, err := newMachine(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	for i, run := range m.steps {
		if err := run(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return m.get(p.Inputs[0].Value), m.logical()
}
