package pointwise

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// maximum is that of all n numbers, by one part.
func maximum(n int) sum[float32, float64] {
	dims, scratch := graph.D(n), make([]float64, partialBytes(1, 1)/8)
	r := plan.Reduction{Fn: graph.ReduceMax, Access: plan.NewAccess(dims, graph.D(1))}
	return newSum(r, vec.Float32(), nil, graph.F32, 1, 1, unsafe.Pointer(&scratch[0]))
}

// The largest number of a run of any length is what a loop finds, wherever it lies, NaN
// and the sign of 0 included.
func TestMaximum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 5*abreast; n += 1 + n/7 {
		s, x := maximum(n), make([]float32, n)
		for _, special := range []float32{5, float32(math.NaN()), float32(math.Inf(1)), 0} {
			for i := range x {
				if x[i] = float32(rnd.NormFloat64()); special == 0 {
					x[i] = float32(math.Copysign(0, -1))
				}
			}
			x[rnd.IntN(n)] = special
			want := x[0]
			for _, v := range x {
				want = max(want, v)
			}
			if got := s.most(0, x); math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
				t.Fatalf("%d numbers with one of %v: %v, want %v", n, special, got, want)
			}
		}
	}
}

// A run as long as a block.
func BenchmarkMaximum(b *testing.B) {
	x := make([]float32, blockLen)
	for i := range x {
		x[i] = float32(i % 37)
	}
	s := maximum(len(x))
	s.reset(0, order{}, 0, 1)
	b.SetBytes(4 * blockLen)
	for b.Loop() {
		s.block(0, 0, x)
	}
}
