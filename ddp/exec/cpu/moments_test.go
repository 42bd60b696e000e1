package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// The variance in one pass keeps every digit of a float32, far from 0 as well.
func TestVarianceFarFromZero(t *testing.T) {
	be := open(t, Config{Threads: 2})
	for _, cols := range []int{1, 3, 16, 96, 2304} {
		for _, mean := range []float64{0, 10, 4096} {
			t.Run(fmt.Sprintf("%d columns around %v", cols, mean), func(t *testing.T) {
				const rows = 1000
				var b graph.Builder
				x := b.Input("x", graph.T(graph.F32, rows, cols))
				b.Output("v", b.MeanKeep(b.Square(b.Sub(x, b.MeanKeep(x, 0))), 0))
				g, err := b.Build()
				if err != nil {
					t.Fatal(err)
				}
				p, err := be.Compile(g, exec.Options{Name: "variance"})
				if err != nil {
					t.Fatal(err)
				}
				closing(t, p)
				noise := make([]float64, rows*cols)
				philox.Name{Purpose: philox.Testing}.Normal(noise)
				in := p.Input("x").F32()
				for i, n := range noise {
					in[i] = float32(mean + n)
				}
				if err := exec.Run(context.Background(), p); err != nil {
					t.Fatal(err)
				}
				for c := range cols {
					if got, want := p.Output("v").At(c), columnVariance(in[c:], cols); math.Abs(got/want-1) > 2e-7 {
						t.Fatalf("column %d: %v, want %v", c, got, want)
					}
				}
			})
		}
	}
}

// columnVariance is the variance of every cols-th element of x, in two passes.
func columnVariance(x []float32, cols int) float64 {
	mean, v, n := 0.0, 0.0, 0.0
	for i := 0; i < len(x); i += cols {
		mean += float64(x[i])
		n++
	}
	mean /= n
	for i := 0; i < len(x); i += cols {
		v += (float64(x[i]) - mean) * (float64(x[i]) - mean)
	}
	return v / n
}
