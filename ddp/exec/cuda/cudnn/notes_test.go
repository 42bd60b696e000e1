//go:build cgo

package cudnn

import (
	"testing"

	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// TestUnwanted: by their numerical notes, in cuDNN's numbers, engines are left out that give
// other bits from run to run (4), convert what they are given down (1) or add in reduced
// precision (2), whatever is computed; those on tensor cores (0) where all digits of float32
// are wanted, and there alone. Of the double's engines none has note 2.
func TestUnwanted(t *testing.T) {
	of := func(d graph.DType, m linalg.Math) linalg.Types { return linalg.Types{Dst: d, A: d, B: d, Math: m} }
	full, tf32, bf16 := of(graph.F32, linalg.Full), of(graph.F32, linalg.TF32), of(graph.BF16, linalg.BF16)
	for _, c := range []struct {
		notes []int32
		out   [3]bool // in full, tf32, bf16
	}{
		{nil, [3]bool{}},
		{[]int32{0}, [3]bool{true, false, false}},
		{[]int32{1}, [3]bool{true, true, true}},
		{[]int32{2}, [3]bool{true, true, true}},
		{[]int32{3}, [3]bool{}}, // Fourier transforms
		{[]int32{4}, [3]bool{true, true, true}},
		{[]int32{0, 2}, [3]bool{true, true, true}},
		{[]int32{5, 4}, [3]bool{true, true, true}}, // Winograd's
	} {
		for i, ty := range []linalg.Types{full, tf32, bf16} {
			if why := unwanted(ty, c.notes); (why != "") != c.out[i] {
				t.Errorf("notes %v in %v: left out because %q, want that to be %v", c.notes, ty, why, c.out[i])
			}
		}
	}
}
