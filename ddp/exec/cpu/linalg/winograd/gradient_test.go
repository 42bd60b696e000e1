package winograd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	plain "ebtrain/ddp/exec/cpu/linalg/loops"
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/graph"
)

// TestBlocksAddUp: where tiles are too many to be held at once, a weight's gradient is the
// sum over blocks of them, the last of which is cut. Such problems are large; here blocks
// are made small.
func TestBlocksAddUp(t *testing.T) { each(t, testBlocksAddUp) }

func testBlocksAddUp(t *testing.T, i *isa) {
	e := always(t, 2, i)
	closeAfter(t, e)
	r := rand.New(rand.NewPCG(3, 4))
	noise := func(n int) []float32 {
		x := micro.Aligned(n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	for _, conv := range []graph.Conv{graph.NewConv(3, 1, 1), graph.NewConv(4, 2, 1)} {
		for _, bf16 := range []bool{false, i.int16s != nil} {
			p := enginetest.NewConvCase("", 67, 16, 8*conv.StrideH, 8, 48, conv).ConvProblem
			p.BF16 = bf16
			k := newGradient(e, e.scheme(p), p)
			k.block = k.num.gradientBlock(40, k.tiles.count()) // or one slab
			if k.single() {
				t.Fatalf("%v: %d tiles are one block", p, k.tiles.count())
			}
			x, dy := noise(p.N*p.H*p.W*p.C), noise(p.N*p.OH*p.OW*p.O)
			n := p.O * p.C * p.KH * p.KW
			got, want, scratch := micro.Aligned(n), make([]float32, n), noise(k.Scratch()/4)
			if err := k.Run(pointer(got), pointer(x), pointer(dy), pointer(scratch)); err != nil {
				t.Fatal(err)
			}
			plain.ConvGradW(p, want, x, dy, 0, 1)
			off, size := 0.0, 0.0
			for i, w := range want {
				off, size = max(off, math.Abs(float64(got[i]-w))), max(size, math.Abs(float64(w)))
			}
			if !(off <= 0.01*size) { // a block more or less is off by half and more
				t.Errorf("%v: off by %v, where numbers are up to %v", p, off, size)
			}
		}
	}
}

// TestScaledByTwos: operands that are smaller or larger by a power of 2, of any size that has
// all its digits, make a result that is so to the bit, by 16-bit integers, too.
func TestScaledByTwos(t *testing.T) {
	each(t, func(t *testing.T, i *isa) {
		e := always(t, 1, i)
		closeAfter(t, e)
		p := enginetest.Convs()[0].ConvProblem
		r := rand.New(rand.NewPCG(5, 6))
		image, weight := make([]float32, p.N*p.H*p.W*p.C), make([]float32, p.O*p.C*p.KH*p.KW)
		for _, x := range [][]float32{image, weight} {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
		scaled := func(x []float32, by float32) []float32 {
			y := micro.Aligned(len(x))
			for i, v := range x {
				y[i] = v * by
			}
			return y
		}
		for _, bf16 := range []bool{false, i.int16s != nil} {
			p.BF16 = bf16
			k, err := e.Conv(engine.Forward, p)
			if err != nil {
				t.Fatal(err)
			}
			run := func(a, b float32) []float32 {
				y, scratch := micro.Aligned(p.N*p.OH*p.OW*p.O), micro.Aligned(k.Scratch()/4)
				if err := k.Run(pointer(y), pointer(scaled(image, a)), pointer(scaled(weight, b)), pointer(scratch)); err != nil {
					t.Fatal(err)
				}
				return y
			}
			want := run(1, 1)
			for _, by := range [][2]float32{{0x1p-40, 1}, {1, 0x1p-40}, {0x1p-20, 0x1p20}, {0x1p40, 1}} {
				for n, v := range run(by[0], by[1]) {
					if v != want[n]*by[0]*by[1] {
						t.Fatalf("by %v, bfloat16 %t: number %d is %v, want %v", by, bf16, n, v, want[n]*by[0]*by[1])
					}
				}
			}
		}
	})
}

func pointer(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }
