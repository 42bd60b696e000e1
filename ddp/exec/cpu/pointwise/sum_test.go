package pointwise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/cpu/threads"
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

// Sums and maxima of whole numbers are exact, however the points are cut into blocks, pieces
// of blocks and parts of the work, and whatever the memory of partial results held.
func TestReductionsOfPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct{ dims, part graph.Shape }{
		{graph.D(60, 7), graph.D(1, 7)}, {graph.D(60, 7), graph.D(60, 1)}, {graph.D(60, 7), graph.D(1, 1)}, {graph.D(60, 7), graph.D(60, 7)},
		{graph.D(5, 40, 3), graph.D(5, 1, 3)}, {graph.D(5, 40, 3), graph.D(1, 40, 1)}, {graph.D(3, 1, 2000), graph.D(3, 1, 1)},
		{graph.D(9, 4096), graph.D(1, 4096)}, {graph.D(9, 4096), graph.D(9, 1)}, // bands of columns
		{graph.D(3, 4096, 2), graph.D(1, 4096, 1)}, {graph.D(0, 4), graph.D(1, 4)},
		{graph.D(9, 8, 512), graph.D(1, 1, 512)}, // beside a sum that has bands
	} {
		if n := resultLen(plan.NewAccess(tt.dims, tt.part)); n != tt.part.Len() {
			t.Errorf("%v to %v: %d results", tt.dims, tt.part, n)
		}
		x, at := make([]float32, tt.dims.Len()), make([]int, tt.dims.Len())
		for i := range x {
			x[i] = float32(rnd.IntN(2001) - 1500)
			at[i] = partOf(i, tt.dims, tt.part)
		}
		for _, fn := range []graph.ReduceFn{graph.ReduceSum, graph.ReduceMax} {
			want := make([]float32, tt.part.Len())
			for i := range want {
				if fn == graph.ReduceMax {
					want[i] = float32(math.Inf(-1))
				}
			}
			for i, v := range x {
				if fn == graph.ReduceMax {
					want[at[i]] = max(want[at[i]], v)
				} else {
					want[at[i]] += v
				}
			}
			for _, parts := range []int{1, 3, 7} {
				got := reducePieces(rnd, plan.Reduction{Fn: fn, Access: plan.NewAccess(tt.dims, tt.part)}, tt.dims, x, len(want), parts)
				if !slices.Equal(got, want) {
					t.Errorf("%v of %v to %v in %d parts: %v, want %v", fn, tt.dims, tt.part, parts, got, want)
				}
			}
		}
	}
}

// partOf is the number of the result that point i belongs to.
func partOf(i int, dims, part graph.Shape) (at int) {
	stride := 1
	for k := dims.Rank() - 1; k >= 0; k-- {
		if part.At(k) > 1 {
			at += i % dims.At(k) * stride
			stride *= part.At(k)
		}
		i /= dims.At(k)
	}
	return at
}

// reducePieces is a reduction of x to n results in a group that also sums over the first axis,
// every block in pieces, short and long ones.
func reducePieces(rnd *rand.Rand, r plan.Reduction, dims graph.Shape, x []float32, n, parts int) []float32 {
	rows := plan.Reduction{Fn: graph.ReduceSum, Access: plan.NewAccess(dims, dims.With(0, 1))}
	o := orderOf(blocks(&plan.Fused{DType: graph.F32, Dims: dims, Sums: []plan.Reduction{r, rows}}))
	out, scratch := make([]float32, n), make([]float64, partialBytes(n, parts)/8)
	for i := range scratch {
		scratch[i] = 1e6
	}
	s := newSum(r, vec.Float32(), unsafe.Pointer(&out[0]), graph.F32, n, parts, unsafe.Pointer(&scratch[0]))
	for w := range parts {
		lo, hi := threads.Part(o.count(), w, parts)
		s.reset(w, o, lo, hi)
		for b := lo; b < hi; b++ {
			at, n := o.at(b)
			for end := at + n; at < end; {
				m := min(end-at, 1+rnd.IntN(1<<rnd.IntN(11)))
				s.block(w, at, x[at:at+m])
				at += m
			}
		}
	}
	s.finish(parts, nil)
	return out
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
