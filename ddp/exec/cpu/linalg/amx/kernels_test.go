package amx

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// Fuzz targets hold every kernel in assembly to its loops in Go. What is written lies in
// guarded memory, of which all is compared.

// assembly is the kernels of this processor.
func assembly(f *testing.F) kernels {
	k, ok := available()
	if !ok {
		f.Skip("this processor has no AMX, or the system does not let a process use it")
	}
	return k
}

// guard is the words before and after memory that is written.
const guard = 16

// guarded is n words, all of them -77, behind a guard.
func guarded(n int) (all []float32, begin unsafe.Pointer) {
	all = micro.Aligned(n + 2*guard)
	for i := range all {
		all[i] = -77
	}
	return all, unsafe.Pointer(&all[guard])
}

func sameBits(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
			t.Fatalf("word %d is %08x, want %08x", i-guard, g, w)
		}
	}
}

// numbers are of all kinds: subnormal ones, infinities and NaN among them.
func numbers(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(rng.Uint32())
		if rng.IntN(8) == 0 {
			v[i] = []float32{0, float32(math.Inf(1)), float32(math.NaN()), 1e-40, -1e-45, math.MaxFloat32, 1 + 0x1p-8, 1 + 3*0x1p-8}[rng.IntN(8)]
		}
	}
	return v
}

func FuzzRound(f *testing.F) {
	k := assembly(f)
	for n := range uint8(4) {
		f.Add(uint64(n), n)
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		n := 1 + int(size)%9
		src := numbers(rand.New(rand.NewPCG(seed, 1)), n*lanes)
		got, g := guarded(n * lanes / 2)
		want, w := guarded(n * lanes / 2)
		k.round(g, &src[0], n)
		roundInGo(w, &src[0], n)
		sameBits(t, got, want)
	})
}

func FuzzPairs(f *testing.F) {
	k := assembly(f)
	for n := range uint8(4) {
		f.Add(uint64(n), n, n)
	}
	f.Fuzz(func(t *testing.T, seed uint64, size, gap uint8) {
		n, step := 1+int(size)%9, lanes+int(gap)%5
		rng := rand.New(rand.NewPCG(seed, 2))
		a, b := numbers(rng, n*step), numbers(rng, n*step)
		places := make([]int, n)
		for i, p := range rng.Perm(n) {
			places[i] = p * (rowBytes + 4)
		}
		got, g := guarded(n * (lanes + 1))
		want, w := guarded(n * (lanes + 1))
		k.pairs(g, &places[0], &a[0], &b[0], 4*step, n)
		pairsInGo(w, &places[0], &a[0], &b[0], 4*step, n)
		sameBits(t, got, want)
	})
}

func FuzzInterleave(f *testing.F) {
	k := assembly(f)
	for n := range uint8(4) {
		f.Add(uint64(n), n, n)
	}
	f.Fuzz(func(t *testing.T, seed uint64, size, gap uint8) {
		n, step := 1+int(size)%9, rowBytes+4*(int(gap)%5)
		rng := rand.New(rand.NewPCG(seed, 3))
		a, b := numbers(rng, 40*lanes), numbers(rng, 40*lanes)
		offsets := make([]int, n)
		for i := range offsets {
			offsets[i] = 2 * rng.IntN(38*lanes)
		}
		half := n*step + 8
		got, g := guarded(2 * half / 4)
		want, w := guarded(2 * half / 4)
		k.interleave(g, half, step, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), &offsets[0], n)
		interleaveInGo(w, half, step, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), &offsets[0], n)
		sameBits(t, got, want)
	})
}

func FuzzGather(f *testing.F) {
	k := assembly(f)
	for n := range uint8(4) {
		f.Add(uint64(n), n, n)
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, steps uint8) {
		n, deep := 1+int(rows)%tileRows, 1+int(steps)%stepsBlock
		rng := rand.New(rand.NewPCG(seed, 5))
		src := numbers(rng, 64*lanes)
		begins, offsets := make([]unsafe.Pointer, n), make([]int, deep)
		for i := range begins {
			begins[i] = unsafe.Pointer(&src[rng.IntN(31*lanes)])
		}
		for i := range offsets {
			offsets[i] = 2 * rng.IntN(62*lanes)
		}
		row := deep*rowBytes + 4
		got, g := guarded(n * row / 4)
		want, w := guarded(n * row / 4)
		k.gather(g, row, &begins[0], &offsets[0], n, deep)
		gatherInGo(w, row, &begins[0], &offsets[0], n, deep)
		sameBits(t, got, want)
	})
}

// FuzzMultiply: sums may be taken in any order, so integers are multiplied, of which sums
// are exact, and only then others.
func FuzzMultiply(f *testing.F) {
	k := assembly(f)
	for n := range uint8(8) {
		f.Add(uint64(n), n, n, n/2, n)
	}
	f.Fuzz(func(t *testing.T, seed uint64, blocks, steps, panels, gap uint8) {
		n, deep, wide, aRow := 1+int(blocks)%3, 1+int(steps)%7, 2*(1+int(panels)%3), rowBytes*(1+int(gap)%3)
		rng := rand.New(rand.NewPCG(seed, 4))
		a, b := integers(rng, 4*tileRows*aRow), integers(rng, wide*deep*tileBytes+rowBytes)
		offsets := make([]int, deep)
		for s := range offsets {
			offsets[s] = 2 * rng.IntN(tileRows*aRow)
		}
		cRow := rowBytes*wide + 4*(int(gap)%5)
		got, g := guarded(n * tileRows * cRow / 4)
		want, w := guarded(n * tileRows * cRow / 4)
		list := make([]block, n)
		for _, c := range []unsafe.Pointer{g, w} {
			for i := range list {
				first := unsafe.Add(c, i*tileRows*cRow)
				list[i] = block{
					steps: deep, offsets: &offsets[0], aRow: aRow,
					a: [2]unsafe.Pointer{unsafe.Pointer(&a[0]), unsafe.Pointer(&a[lanes*aRow/2])},
					b: unsafe.Pointer(&b[0]), bPanel: deep*tileBytes + rowBytes/wide, panels: wide,
					c: [2]unsafe.Pointer{first, unsafe.Add(first, lanes*cRow)}, cRow: cRow, add: (int(seed)+i)%2 == 0,
				}
				if seed%5 == 0 { // sixteen rows only
					list[i].a[1], list[i].c[1] = list[i].a[0], list[i].c[0]
				}
			}
			if c == g {
				k.multiply(&list[0], n)
			} else {
				multiplyInGo(&list[0], n)
			}
		}
		sameBits(t, got, want)
	})
}

// integers are n bytes of bfloat16s from -8 to 8, by sixteenths.
func integers(rng *rand.Rand, n int) []uint16 {
	v := make([]uint16, n/2)
	for i := range v {
		v[i] = bf16(float32(rng.IntN(257)-128) / 16)
	}
	return v
}
