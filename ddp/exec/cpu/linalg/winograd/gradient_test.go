package winograd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

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

func pointer(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }
