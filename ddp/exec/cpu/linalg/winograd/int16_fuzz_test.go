package winograd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// fma is a·b + c, rounded once: the sum in float64 is rounded to odd, so that rounding
// it again does no harm.
func fma(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	v := s - p
	e := (p - (s - v)) + (z - v)
	if u := math.Float64bits(s); e != 0 && u&1 == 0 && !math.IsInf(s, 0) {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

// scaleOf is the factor that gives a vector its norm, and what undoes it, from its sum of
// squares.
func scaleOf(squares float32) (up, down float32) {
	if squares < minSquares { // not NaN
		squares = minSquares
	}
	norm := float32(math.Sqrt(float64(squares)))
	return maxNorm / norm, float32(1./maxNorm) * norm
}

// toInt32 rounds as the processor does: what does not fit is the smallest number.
func toInt32(x float32) int32 {
	if r := math.RoundToEven(float64(x)); r >= math.MinInt32 && r <= math.MaxInt32 {
		return int32(r)
	}
	return math.MinInt32
}

// scaleRowGo is one row of scaleRows: two sums for each of 16 lanes.
func scaleRowGo(dst []int16, src []float32) (scale float32) {
	var s [2][lanes]float32
	for i, x := range src {
		v := i / lanes % 2
		s[v][i%lanes] = fma(x, x, s[v][i%lanes])
	}
	for i := range lanes {
		s[0][i] += s[1][i]
	}
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			s[0][i] += s[0][i+half]
		}
	}
	up, down := scaleOf(s[0][0])
	for i, x := range src {
		dst[i] = int16(min(max(toInt32(x*up), math.MinInt16), math.MaxInt16))
	}
	return down
}

// hostile draws numbers of all sizes, some not finite.
func hostile(seed uint64, special uint8) func() float32 {
	rng := rand.New(rand.NewPCG(seed, 5))
	return func() float32 {
		switch r := rng.IntN(1000); {
		case r == 0 && special&1 != 0:
			return float32(math.NaN())
		case r == 1 && special&2 != 0:
			return float32(math.Inf(1))
		case special&4 != 0:
			return float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(250)-125)))
		case special&8 != 0:
			return 0
		}
		return float32(rng.NormFloat64())
	}
}

func int16Seeds(f *testing.F) {
	for n := range uint8(18) {
		f.Add(uint64(n), n, n/3, n%16)
	}
}

func withInt16s(f *testing.F) *int16s {
	list := onEach(f)
	if list[0].int16s == nil {
		f.Skip("no products of 16-bit integers on this CPU")
	}
	return list[0].int16s
}

// FuzzScaleRows holds scaleRows to the same operations in Go, bit for bit.
func FuzzScaleRows(f *testing.F) {
	k := withInt16s(f)
	int16Seeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, vectors, rows, special uint8) {
		n, m := lanes*(1+int(vectors)%20), 1+int(rows)%9
		src, draw := guarded(m*(n+3)), hostile(seed, special)
		dst, scales := guarded(m*(n/2+5)), guarded(2*m)
		want, wantScales := slices.Clone(dst), slices.Clone(scales)
		for r := range m {
			row := src[lanes+r*(n+3):][:n]
			for i := range row {
				row[i] = draw()
			}
			wantScales[lanes+2*r] = scaleRowGo(unsafe.Slice((*int16)(unsafe.Pointer(&want[lanes+r*(n/2+5)])), n), row)
		}
		k.scaleRows(&rowScaling{unsafe.Pointer(&dst[lanes]), 4 * (n/2 + 5), unsafe.Pointer(&src[lanes]), 4 * (n + 3), unsafe.Pointer(&scales[lanes]), 8, n / lanes, m})
		sameBits(t, scales, wantScales, "scales of %d rows of %d", m, n)
		sameWords(t, dst, want)
	})
}

// FuzzScaleColumns holds scaleColumns to the same operations in Go, bit for bit, also in
// place.
func FuzzScaleColumns(f *testing.F) {
	k := withInt16s(f)
	int16Seeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, pairs, pad, special uint8) {
		n, step := 2*(1+int(pairs)%70), slabWidth+int(pad)%4
		src, draw := guarded(n*step), hostile(seed, special)
		for i := lanes; i < len(src)-lanes; i++ {
			src[i] = draw()
		}
		dst, scales := guarded(n/2*step), guarded(slabWidth)
		want, wantScales := slices.Clone(dst), slices.Clone(scales)
		for c := range slabWidth {
			var s [2]float32
			for r := range n {
				x := src[lanes+r*step+c]
				s[r%2] = fma(x, x, s[r%2])
			}
			up, down := scaleOf(s[0] + s[1])
			wantScales[lanes+c] = down
			for r := 0; r < n; r += 2 {
				even, odd := toInt32(src[lanes+r*step+c]*up), toInt32(src[lanes+(r+1)*step+c]*up)
				words(want)[lanes+r/2*step+c] = uint32(uint16(even)) | uint32(odd)<<16
			}
		}
		k.scaleColumns(&words(dst)[lanes], 4*step, &src[lanes], 4*step, &scales[lanes], n)
		sameBits(t, scales, wantScales, "scales of %d rows", n)
		sameWords(t, dst, want)
		k.scaleColumns(&words(src)[lanes], 4*step, &src[lanes], 4*step, &scales[lanes], n)
		for r := range n / 2 {
			sameWords(t, src[lanes+r*step:][:slabWidth], want[lanes+r*step:][:slabWidth])
		}
	})
}

func sameWords(t *testing.T, got, want []float32) {
	t.Helper()
	for i, w := range words(want) {
		if g := words(got)[i]; g != w {
			t.Fatalf("word %d is %08x, want %08x", i-lanes, g, w)
		}
	}
}
