package reduce

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"testing"
	"unsafe"

	"ebtrain/collective"
)

// treeSum is the slow reference: the balanced binary tree of one element.
func treeSum[T number](x []T, add func(a, b T) T) T {
	if len(x) == 1 {
		return x[0]
	}
	half := 1 << (bits.Len(uint(len(x)-1)) - 1)
	return add(treeSum(x[:half], add), treeSum(x[half:], add))
}

func reference[T number](op collective.Op, div int, x []T) T {
	r := treeSum(x, func(a, b T) T {
		switch op {
		case collective.Max:
			return max(a, b)
		case collective.Min:
			return min(a, b)
		}
		return a + b
	})
	if op == collective.Mean && div > 1 {
		r /= T(div)
	}
	return r
}

func test[T number](t *testing.T, d collective.DType, value func(s, i int) T) {
	var scratch Scratch
	for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Max, collective.Min} {
		if op == collective.Mean && !d.IsFloat() {
			continue
		}
		for _, n := range []int{1, 2, 3, 4, 5, 8, 11} {
			for _, length := range []int{0, 1, 5, 67, block, block + 3} {
				for alias := -1; alias < n; alias += max(1, n/2) {
					srcs, in := make([][]byte, n), make([][]T, n)
					for s := range srcs {
						in[s] = make([]T, length)
						for i := range in[s] {
							in[s][i] = value(s, i)
						}
						srcs[s] = bytesOf(append([]T(nil), in[s]...))
					}
					guarded := make([]T, length+16) // 8 guards on both sides
					dst := bytesOf(guarded[8 : 8+length])
					if alias >= 0 {
						dst = srcs[alias]
					}
					Job{From: d, To: d, Op: op, Div: n}.Run(dst, srcs, &scratch)
					for i, got := range as[T](dst) {
						x := make([]T, n)
						for s := range x {
							x[s] = in[s][i]
						}
						if want := reference(op, n, x); got != want && (got == got || want == want) {
							t.Fatalf("%s %s of %d sources, length %d, alias %d: element %d is %v, want %v", op, d, n, length, alias, i, got, want)
						}
					}
					for i := range 8 {
						if guarded[i] != 0 || guarded[8+length+i] != 0 {
							t.Fatalf("%s %s of %d sources, length %d: written outside", op, d, n, length)
						}
					}
				}
			}
		}
	}
}

func TestTypes(t *testing.T) {
	wave := func(s, i int) float64 { return math.Sin(float64(s*7919+i)) * math.Exp2(float64((s*31+i*17)%20)) }
	test(t, collective.F64, wave)
	test(t, collective.F32, func(s, i int) float32 {
		switch x := float32(wave(s, i)); {
		case i%97 == 3 && s == 1:
			return float32(math.NaN())
		case i%89 == 5:
			return float32(math.Inf(1 - 2*(s&1)))
		default:
			return x
		}
	})
	test(t, collective.I32, func(s, i int) int32 { return int32(s*1e9 + i*12345) }) // wraps
	test(t, collective.I64, func(s, i int) int64 { return int64(s)<<60 - int64(i)*1234567 })
	test(t, collective.U8, func(s, i int) uint8 { return uint8(s*100 + i) })
}

// toBF16 rounds to nearest even by comparing the two neighbours.
func toBF16(x float32) uint16 {
	if x != x {
		return 0x7fc0
	}
	down := uint16(math.Float32bits(x) >> 16)
	lo := float64(fromBF16(down))
	hi := float64(fromBF16(down + 1))
	if math.IsInf(hi, 0) { // the spacing goes on beyond the largest number
		hi = math.Copysign(0x1p128, float64(x))
	}
	switch below, above := math.Abs(float64(x)-lo), math.Abs(hi-float64(x)); {
	case math.IsInf(float64(x), 0) || below < above || below == above && down&1 == 0:
		return down
	default:
		return down + 1
	}
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func TestBF16(t *testing.T) {
	var scratch Scratch
	for n := 1; n <= 9; n++ {
		for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Max, collective.Min} {
			const length = block + 77
			srcs, wide := make([][]byte, n), make([][]byte, n)
			for s := range srcs {
				x, w := make([]uint16, length), make([]float32, length)
				for i := range x {
					x[i] = toBF16(float32(math.Sin(float64(s*131+i)) * 100))
					w[i] = fromBF16(x[i])
				}
				srcs[s], wide[s] = bytesOf(x), bytesOf(w)
			}
			got, part, finish, want := make([]uint16, length), make([]float32, length), make([]uint16, length), make([]float32, length)
			Job{From: collective.BF16, To: collective.BF16, Op: op, Div: n}.Run(bytesOf(got), srcs, &scratch)
			Job{From: collective.F32, To: collective.F32, Op: op, Div: n}.Run(bytesOf(want), wide, &scratch)
			Job{From: collective.BF16, To: collective.F32, Op: op}.Run(bytesOf(part), srcs, &scratch)
			Job{From: collective.F32, To: collective.BF16, Op: op, Div: n}.Run(bytesOf(finish), [][]byte{bytesOf(part)}, &scratch)
			for i := range got {
				if w := toBF16(want[i]); got[i] != w || finish[i] != w {
					t.Fatalf("%s of %d: element %d is %04x, in two steps %04x, want %04x", op, n, i, got[i], finish[i], w)
				}
			}
		}
	}
}

// TestEverywhere wants the bits of Run in every vector, and nothing around them.
func TestEverywhere(t *testing.T) {
	var scratch Scratch
	for _, d := range []collective.DType{collective.F32, collective.F64, collective.BF16, collective.I32, collective.U8} {
		for n := 1; n <= 9; n++ {
			for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Max} {
				for _, elems := range []int{0, 1, 31, 33, 100, 128, 256, 300, tile + 37} {
					if op == collective.Mean && !d.IsFloat() {
						continue
					}
					j := Job{From: d, To: d, Op: op, Div: n}
					size, wide := elems*d.Size(), (elems+2)*d.Size()
					vectors, before, want := make([][]byte, n), make([][]byte, n), bytesOf(make([]uint64, wide))[:size]
					for v := range vectors {
						whole := bytesOf(make([]uint64, wide))[:wide]
						for i := range elems {
							putNumber(d, whole[(i+1)*d.Size():], math.Sin(float64(v*7919+i))*100)
						}
						vectors[v] = whole[d.Size() : d.Size()+size]
						before[v] = bytes.Clone(vectors[v])
						defer func() {
							if !bytes.Equal(whole[:d.Size()], make([]byte, d.Size())) || !bytes.Equal(whole[d.Size()+size:], make([]byte, d.Size())) {
								t.Errorf("%s %s of %d vectors of %d elements: written outside", op, d, n, elems)
							}
						}()
					}
					j.Run(want, before, &scratch)
					j.Everywhere(vectors, &scratch)
					for v := range vectors {
						if !bytes.Equal(vectors[v], want) {
							t.Fatalf("%s %s of %d vectors of %d elements: vector %d has other bits than Run", op, d, n, elems, v)
						}
					}
				}
			}
		}
	}
}

// putNumber writes x as an element of type d.
func putNumber(d collective.DType, b []byte, x float64) {
	switch d {
	case collective.F32:
		as[float32](b[:4])[0] = float32(x)
	case collective.F64:
		as[float64](b[:8])[0] = x
	case collective.BF16:
		as[uint16](b[:2])[0] = toBF16(float32(x))
	case collective.I32:
		as[int32](b[:4])[0] = int32(x)
	case collective.U8:
		b[0] = uint8(x)
	}
}

func FuzzNarrow(f *testing.F) {
	for _, x := range []float32{0, 1, -1, 1.00390625, 1.01171875, 3.3895314e38, 3.4e38, float32(math.Inf(-1)), 1e-45, float32(math.NaN())} {
		f.Add(math.Float32bits(x))
	}
	f.Fuzz(func(t *testing.T, b uint32) {
		x := math.Float32frombits(b)
		var got [1]uint16
		narrow(got[:], []float32{x})
		if x != x {
			if g := fromBF16(got[0]); g == g {
				t.Errorf("NaN %08x becomes %v", b, g)
			}
			return
		}
		if want := toBF16(x); got[0] != want {
			t.Errorf("%v (%08x) becomes %04x, want %04x", x, b, got[0], want)
		}
	})
}

// FuzzAdd compares the vector loops with the reference, bit for bit, guards too.
func FuzzAdd(f *testing.F) {
	f.Add([]byte("some bytes that are elements of four sources, some more, and so on"), uint8(3))
	f.Add(bytes.Repeat([]byte{1, 2, 0x80, 0x7f, 0xff}, 500), uint8(0))
	f.Add(bytes.Repeat([]byte{1, 2, 0x3f, 0x7f, 0xbf, 3}, 400), uint8(2)) // long enough for the loops, and scaled
	f.Fuzz(func(t *testing.T, in []byte, at uint8) {
		sameAsGo(t, as[float32](append(in[:0:0], in[:len(in)/16*16]...)), 1/float32(int(at)+1))
		sameAsGo(t, as[float64](append(in[:0:0], in[:len(in)/32*32]...)), 1/float64(int(at)+1))
	})
}

func sameAsGo[T float32 | float64](t *testing.T, x []T, r T) {
	n := len(x) / 4
	a, b, c, d := x[:n], x[n:2*n], x[2*n:3*n], x[3*n:4*n]
	for k := 2; k <= 4; k++ {
		got, want := make([][]byte, k), make([]T, n)
		for v := range got {
			got[v] = bytesOf(append(x[:0:0], x[v*n:(v+1)*n]...))
		}
		[]func(){2: func() { add2Generic(want, a, b) }, 3: func() { add3Generic(want, a, b, c) }, 4: func() { add4Generic(want, a, b, c, d) }}[k]()
		done := vectorAll(collective.VecOf(x).Type, got, float64(r))
		for v := range got {
			for i, g := range as[T](got[v])[:done/int(unsafe.Sizeof(r))] {
				if w := want[i] * r; math.Float64bits(float64(g)) != math.Float64bits(float64(w)) && (g == g || w == w) {
					t.Fatalf("sum of %d everywhere, of %T, %d elements: element %d of vector %d is %v, want %v", k, r, n, i, v, g, w)
				}
			}
		}
	}
	for k := 2; k <= 5; k++ {
		got, want := make([]T, n+2), make([]T, n+2) // a guard on both sides
		got[0], got[n+1], want[0], want[n+1] = 77, 77, 77, 77
		in, out := got[1:n+1], want[1:n+1]
		switch k {
		case 2:
			add2(in, a, b)
			add2Generic(out, a, b)
		case 3:
			add3(in, a, b, c)
			add3Generic(out, a, b, c)
		case 4:
			add4(in, a, b, c, d)
			add4Generic(out, a, b, c, d)
		case 5:
			copy(in, a)
			copy(out, a)
			scale(in, r)
			for i := range out {
				out[i] *= r
			}
		}
		for i, w := range want {
			if g := got[i]; math.Float64bits(float64(g)) != math.Float64bits(float64(w)) && (g == g || w == w) {
				t.Fatalf("kernel %d of %T, %d elements: element %d is %v, want %v", k, r, n, i-1, g, w)
			}
		}
	}
}

// TestPanics: what is not as described is refused by Run itself, and not by the runtime if
// that happens to notice it.
func TestPanics(t *testing.T) {
	for _, test := range []struct {
		from, to collective.DType
		dst, src int // bytes
		want     string
	}{
		{collective.F32, collective.F64, 8, 4, "reduce: from f32 to f64"},
		{collective.F64, collective.F32, 4, 8, "reduce: from f64 to f32"},
		{collective.F32, collective.F32, 8, 4, "reduce: source 1 has 4 bytes, expected 8"},
		{collective.F32, collective.F32, 8, 12, "reduce: source 1 has 12 bytes, expected 8"},
	} {
		func() {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("got panic %v, want %q", got, test.want)
				}
			}()
			first := make([]byte, test.dst/test.to.Size()*test.from.Size())
			Job{From: test.from, To: test.to, Op: collective.Sum}.Run(make([]byte, test.dst), [][]byte{first, make([]byte, test.src)}, &Scratch{})
		}()
	}
}

// BenchmarkEverywhere is beside the loop that it replaces: a sum and a copy.
func BenchmarkEverywhere(b *testing.B) {
	for _, n := range []int{32 << 10, 512 << 10, 8 << 20} {
		for _, how := range []string{"store", "copy"} {
			b.Run(fmt.Sprintf("n=%d/%s", n, how), func(b *testing.B) {
				vectors := [][]byte{bytesOf(make([]float32, n)), bytesOf(make([]float32, n))}
				j, scratch, tiles := Job{From: collective.F32, To: collective.F32, Op: collective.Sum}, &Scratch{}, make([][]byte, 2)
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					if how == "store" {
						j.Everywhere(vectors, scratch)
						continue
					}
					for at := 0; at < 4*n; at += tile {
						for v := range tiles {
							tiles[v] = vectors[v][at:min(at+tile, 4*n)]
						}
						j.Run(tiles[0], tiles, scratch)
						copy(tiles[1], tiles[0])
					}
				}
			})
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, sources := range []int{2, 4, 8} {
		for _, n := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("sources=%d/n=%d", sources, n), func(b *testing.B) {
				srcs := make([][]byte, sources)
				for s := range srcs {
					srcs[s] = bytesOf(make([]float32, n))
				}
				dst := bytesOf(make([]float32, n))
				var scratch Scratch
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					Job{From: collective.F32, To: collective.F32, Op: collective.Sum}.Run(dst, srcs, &scratch)
				}
			})
		}
	}
}
