//go:build !noasm

package cpu

import (
	"fmt"
	"testing"

	"ebtrain/collective/subnormal"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// TestSubnormals: subnormal numbers count as zero, as operands and as results, on every
// thread and in every room, and only there. (Other builds compute with them.)
func TestSubnormals(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("threads=%d", n), func(t *testing.T) {
			be := open(t, Config{Threads: n}).(*Backend)
			if !flushing(be) {
				t.Fatal("the backend's thread computes with subnormal numbers")
			}
			const rows, cols = 96, 160
			var b graph.Builder
			x, w := b.Input("x", graph.Type{DType: graph.F32, Shape: graph.D(rows, cols)}), b.Input("w", graph.Type{DType: graph.F32, Shape: graph.D(cols, rows)})
			for name, y := range map[string]graph.ID{
				"fused":   b.Scale(x, 0.25),
				"sum":     b.Sum(x, 1),
				"product": b.MatMul(x, w, false, false),
			} {
				b.Output(name, y)
			}
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			p, err := be.Compile(g, exec.Options{Name: "subnormal"})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, p)
			for _, value := range []float32{1e-39, 2e-38} {
				x, w := p.Input("x").F32(), p.Input("w").F32()
				for i := range x {
					x[i], w[i] = value, 1
				}
				if err := exec.Run(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"fused", "sum", "product"} {
					if name != "fused" && value > 1e-38 {
						continue // normal numbers
					}
					out := p.Output(name)
					for i := range out.Type.Shape.Len() {
						if got := out.At(i); got != 0 {
							t.Fatalf("%s of %g: element %d is %g, want 0", name, value, i, got)
						}
					}
				}
			}
			if subnormal.Zeros() {
				t.Error("the caller's thread counts subnormal numbers as zero, too")
			}
		})
	}
}

// flushing asks the backend's thread.
func flushing(b *Backend) (yes bool) {
	b.do(func() { yes = subnormal.Zeros() })
	return yes
}
