package array

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// A walk reads what the access says of each point, from any point on.
func TestExpand(t *testing.T) {
	dims := graph.D(3, 4, 5, 6)
	r := rand.New(rand.NewPCG(1, 1))
	for mask := range 16 { // which axes are repeated
		part := dims
		for i := range 4 {
			if mask>>i&1 == 1 {
				part = part.With(i, 1)
			}
		}
		a := plan.NewAccess(dims, part)
		src := make([]float32, part.Len())
		for i := range src {
			src[i] = float32(i)
		}
		for range 50 {
			start := r.IntN(dims.Len())
			dst := make([]float32, 1+r.IntN(dims.Len()-start))
			Expand(dst, src, a, start)
			for i, v := range dst {
				if want := src[a.Offset(start+i)]; v != want {
					t.Fatalf("%v at %d: %v, want %v", a, start+i, v, want)
				}
				if p := Period(a); p > 0 && v != src[(start+i)%p] {
					t.Fatalf("%v at %d: %v, and it repeats after %d", a, start+i, v, p)
				}
			}
		}
	}
}

// Integers are rounded to even and wrap around, BF16 is rounded to even.
func TestConversions(t *testing.T) {
	x := []float64{0, 2.5, 3.5, -1.5, 257, 1 + 0x1p-8, 1 + 0x3p-8}
	for _, tt := range []struct {
		dtype graph.DType
		want  []float64
	}{
		{graph.F32, x},
		{graph.F64, x},
		{graph.BF16, []float64{0, 2.5, 3.5, -1.5, 256, 1, 1 + 0x1p-6}},
		{graph.I32, []float64{0, 2, 4, -2, 257, 1, 1}},
		{graph.I64, []float64{0, 2, 4, -2, 257, 1, 1}},
		{graph.U8, []float64{0, 2, 4, 254, 1, 1, 1}},
	} {
		mem, got := make([]float64, len(x)+1), make([]float64, len(x))
		WriterOf[float64](tt.dtype)(unsafe.Pointer(&mem[0]), 1, x)
		ReaderOf[float64](tt.dtype)(got, unsafe.Pointer(&mem[0]), 1)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.dtype, got, tt.want)
		}
	}
	if got := [2]int64{Rounded[int64](2.5), Rounded[int64](-3.7)}; got != [2]int64{2, -4} {
		t.Errorf("rounded to %v", got)
	}
}

// What a group computes in a wider type is brought to its own after every op: whole numbers
// wrap around, BF16 is rounded to even.
func TestRounders(t *testing.T) {
	for dt, want := range map[graph.DType][]int64{
		graph.I32: {300, -1, -1 << 31, 5},
		graph.U8:  {44, 255, 0, 5},
		graph.I64: {300, -1, 1 << 31, 1<<32 + 5},
	} {
		x := []int64{300, -1, 1 << 31, 1<<32 + 5}
		if round := RounderOf[int64](dt); round != nil {
			round(x)
		}
		if !slices.Equal(x, want) {
			t.Errorf("%v: %v, want %v", dt, x, want)
		}
	}
	x := []float32{1 + 0x1p-8, 1 + 0x3p-8}
	RounderOf[float32](graph.BF16)(x)
	if want := []float32{1, 1 + 0x1p-6}; !slices.Equal(x, want) {
		t.Errorf("bf16: %v, want %v", x, want)
	}
}

// All elements are set, and none beyond.
func TestFill(t *testing.T) {
	for n := range 300 {
		d := make([]float32, n+1)
		Fill(d[:n], 3)
		for i, v := range d[:n] {
			if v != 3 {
				t.Fatalf("element %d of %d is %v", i, n, v)
			}
		}
		if d[n] != 0 {
			t.Fatalf("the element after %d is %v", n, d[n])
		}
	}
}

func BenchmarkFill(b *testing.B) {
	d := make([]float32, 1024)
	b.SetBytes(int64(4 * len(d)))
	for b.Loop() {
		Fill(d, 3)
	}
}
