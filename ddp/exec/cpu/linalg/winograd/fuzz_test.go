package winograd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Fuzz targets hold every kernel in assembly to Go. What is written lies in guarded
// memory, of which all is compared.

// onEach gives a target the instruction sets of this CPU.
func onEach(f *testing.F) []isa {
	list := isas()
	if len(list) == 0 {
		f.Skip("no transforms for this CPU")
	}
	return list
}

// untouched is what guard words hold.
const untouched = -77

func guarded(n int) []float32 {
	v := make([]float32, n+2*lanes)
	for i := range v {
		v[i] = untouched
	}
	return v
}

func sameBits(t *testing.T, got, want []float32, format string, args ...any) {
	t.Helper()
	for i := range want {
		g, w := got[i], want[i]
		if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf(format+": word %d is %v (%08x), want %v (%08x)", append(args, i-lanes, g, math.Float32bits(g), w, math.Float32bits(w))...)
		}
	}
}

// FuzzMaps holds the loops of all maps to their matrices, within four roundings of Σ|m·x|,
// and the instruction sets to each other, bit for bit.
func FuzzMaps(f *testing.F) {
	list := onEach(f)
	for n := range uint8(12) {
		f.Add(uint64(n), n, n/2, n/3, n%5)
	}
	f.Fuzz(func(t *testing.T, seed uint64, cols, vectors, pad, which uint8) {
		for _, five := range []bool{true, false} {
			var first []float32
			for i := range list {
				s := newF43(&list[i])
				if five {
					s = newF42(&list[i])
				}
				l, m := mapOf(s, int(which)%5)
				got := applyMap(t, l, m, seed, 1+int(cols)%8, 1+int(vectors)%maxVectors, int(pad)%3)
				if first == nil {
					first = got
				}
				sameBits(t, got, first, "%s against %s, map %d of %d points", list[i].kernel.Name, list[0].kernel.Name, which%5, s.n)
			}
		}
	})
}

func mapOf(s *scheme, which int) (*linear, [][]float64) {
	at, g, bt := definition(s)
	return []*linear{&s.input, &s.output, &s.spread, &s.filter, &s.gather}[which], [][][]float64{bt, at, transposed(at), g, transposed(g)}[which]
}

// applyMap is l on random numbers, with so many vectors between those that belong.
func applyMap(t *testing.T, l *linear, m [][]float64, seed uint64, cols, vectors, pad int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 3))
	at := func(i, vector, col int) int { return ((i*vectors+vector)*cols+col)*(1+pad)*lanes + lanes }
	src, dst := guarded(at(l.cols, 0, 0)), guarded(at(l.rows, 0, 0))
	for i := lanes; i < len(src)-lanes; i++ {
		src[i] = float32(rng.NormFloat64() * math.Exp(3*rng.NormFloat64()))
	}
	p := &pass{dst: unsafe.Pointer(&dst[at(0, 0, 0)]), dstPoint: 4 * at(1, 0, 0), consts: l.consts, cols: cols, vectors: vectors}
	p.dstPoint, p.dstCol, p.dstVector = 4*(at(1, 0, 0)-lanes), 4*(at(0, 0, 1)-lanes), 4*(at(0, 1, 0)-lanes)
	p.srcCol, p.srcVector = p.dstCol, p.dstVector
	for i := range l.cols {
		p.src[i] = unsafe.Pointer(&src[at(i, 0, 0)])
	}
	l.run(p)
	want := guarded(len(dst) - 2*lanes)
	for i := range l.rows {
		for v := range vectors {
			for c := range cols {
				for lane := range lanes {
					sum, abs := 0.0, 0.0
					for j, w := range m[i] {
						x := w * float64(src[at(j, v, c)+lane])
						sum, abs = sum+x, abs+math.Abs(x)
					}
					o := at(i, v, c) + lane
					if want[o] = dst[o]; !(math.Abs(float64(dst[o])-sum) <= 4*0x1p-23*abs) {
						t.Fatalf("number %d, vector %d, column %d, channel %d is %v, want %v", i, v, c, lane, dst[o], sum)
					}
				}
			}
		}
	}
	sameBits(t, dst, want, "between results")
	return dst
}

// FuzzPrefetch: no address is a fault.
func FuzzPrefetch(f *testing.F) {
	list := onEach(f)
	f.Add(uint64(0), 6, 5, 1<<20, -64)
	f.Add(uint64(math.MaxUint64), 1, 1, math.MaxInt, math.MinInt)
	f.Fuzz(func(_ *testing.T, p uint64, rows, cols, down, across int) {
		if k := list[0].int16s; k != nil {
			k.prefetch(uintptr(p), 1+rows&15, 1+cols&15, down, across, 64*(1+rows&3))
		}
	})
}
