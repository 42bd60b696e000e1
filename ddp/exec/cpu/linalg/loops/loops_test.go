package loops

import (
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// The parts that threads compute make up the whole, however many there are.
func TestParts(t *testing.T) {
	p := engine.MatMulProblem{M: 5, N: 3, K: 4}
	a, b := make([]float64, 20), make([]float64, 12)
	for i := range a {
		a[i] = float64(i % 7)
	}
	for i := range b {
		b[i] = float64(i % 5)
	}
	want := make([]float64, 15)
	MatMul(p, want, a, b, 0, 1)
	for _, n := range []int{2, 3, 7} {
		got := make([]float64, 15)
		for w := range n {
			MatMul(p, got, a, b, w, n)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d parts: element %d is %v, want %v", n, i, got[i], want[i])
			}
		}
	}
}
