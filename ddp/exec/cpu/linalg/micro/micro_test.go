package micro

import (
	"math"
	"math/rand/v2"
	"testing"
)

// shape is one call of a micro-kernel, drawn from what a fuzzer finds.
type shape struct {
	mr, nr            int
	depth, rows, cols int
	rs, ks            int // strides of a
	add               bool
}

func newShape(mr, nr int, depth, rows, cols uint8, transposed, add bool) shape {
	s := shape{mr: mr, nr: nr, depth: 1 + int(depth)%70, rows: 1 + int(rows)%mr, cols: 1 + int(cols)%nr, add: add}
	if s.rs, s.ks = s.depth+3, 1; transposed {
		s.rs, s.ks = 1, mr+2
	}
	return s
}

// floats is the length of a that the kernel may read, and pitch the distance of rows
// of C.
func (s shape) floats() int { return (s.mr-1)*s.rs + (s.depth-1)*s.ks + 1 }
func (s shape) pitch() int  { return s.nr + 5 }

func (s shape) offsets() (off [MaxMR]int) {
	for r := range off {
		off[r] = max(0, s.mr-1-r)*s.pitch() + guard // backwards: rows are anywhere
	}
	return off
}

// guard words lie before and after a, b and C; those of C must stay as they are, and
// NaN from the others would be seen in C.
const guard = 16

func guarded[T any](n int, outside T, draw func() T) (all, inside []T) {
	all = make([]T, n+2*guard)
	for i := range all {
		if all[i] = outside; i >= guard && i < n+guard {
			all[i] = draw()
		}
	}
	return all, all[guard : n+guard : n+guard]
}

// seeds is every number of rows, and columns and depths around what a vector holds.
func seeds(f *testing.F) {
	for rows := range uint8(MaxMR) {
		for i, cols := range []uint8{0, 3, 4, 7, 14, 15, 16, 30, 31} {
			f.Add(uint64(rows), uint8(i*i+int(rows)), rows, cols, i%2 == 0, rows%2 == 0)
			f.Add(uint64(cols), uint8(i), rows, cols, i%2 != 0, rows%2 == 0)
		}
	}
}

// FuzzFloat32 holds every micro-kernel to its definition, bit for bit: of numbers
// that are multiples of 1/16 up to 2, sums of 70 products are exact.
func FuzzFloat32(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, depth, rows, cols uint8, transposed, add bool) {
		for _, k := range All() {
			testFloat32(t, &k, false, seed, depth, rows, cols, transposed, add)
			testFloat32(t, &k, true, seed, depth, rows, cols, transposed, add)
		}
	})
}

// testFloat32 calls Run, or if general, Sum of any shape in up to three segments of b in
// rows of any length.
func testFloat32(t *testing.T, k *Kernel, general bool, seed uint64, depth, rows, cols uint8, transposed, add bool) {
	s, segments, segment, bs := newShape(k.MR, k.NR, depth, rows, cols, transposed, add), 1, 0, k.NR
	if general {
		mr, nr := k.Shape(1 + int(cols)%k.NR)
		s = newShape(mr, nr, depth, rows, cols, transposed, add)
		segments, segment, bs = 1+int(seed%3), int(depth)%7, nr+int(rows)%5
	}
	s.mr = (s.rows + k.Step - 1) / k.Step * k.Step // of a no row beyond those is read
	read := k.NR
	if k.Masks {
		read = s.cols
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func() float32 { return float32(rng.IntN(65)-32) / 16 }
	nan := float32(math.NaN())
	_, a := guarded(s.floats()+(segments-1)*segment, nan, draw)
	_, b := guarded((segments*s.depth-1)*bs+read, nan, draw)
	want, _ := guarded(s.mr*s.pitch(), 7, draw)
	got, off := append([]float32(nil), want...), s.offsets()
	for r := range s.rows {
		for j := range s.cols {
			sum := float32(0)
			for l := range segments * s.depth {
				sum += a[r*s.rs+l/s.depth*segment+l%s.depth*s.ks] * b[l*bs+j]
			}
			if s.add {
				sum += want[off[r]+j]
			}
			want[off[r]+j] = sum
		}
	}
	if general {
		k.Sum(&Tile{A: a, RS: s.rs, KS: s.ks, Segment: segment, B: b, BS: bs, C: got, Off: &off,
			K: s.depth, Segments: segments, Rows: s.rows, Cols: s.cols, Add: s.add})
	} else {
		k.Run(s.depth, a, s.rs, s.ks, b, got, &off, s.rows, s.cols, s.add)
	}
	equal(t, k.Name, s, got, want)
}

// FuzzInt16 holds the micro-kernel of integers to the same operations in Go, bit for
// bit.
func FuzzInt16(f *testing.F) {
	k, ok := Int16()
	if !ok {
		f.Skip("no products of 16-bit integers on this CPU")
	}
	seeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, depth, rows, cols uint8, transposed, add bool) {
		s := newShape(k.MR, k.NR, depth, rows, cols, transposed, add)
		rng := rand.New(rand.NewPCG(seed, 2))
		const most = 3900 // so that 140 products of two fit into 32 bits
		word := func() uint32 {
			return uint32(uint16(rng.IntN(2*most)-most)) | uint32(rng.IntN(2*most)-most)<<16
		}
		_, a := guarded(s.floats(), 0x7fff7fff, word)
		_, b := guarded(s.depth*s.nr, 0x7fff7fff, word)
		nan := float32(math.NaN())
		_, sa := guarded(s.rows, nan, rng.Float32)
		_, sb := guarded(s.nr, nan, rng.Float32)
		want, _ := guarded(s.mr*s.pitch(), 7, rng.Float32)
		got, off := append([]float32(nil), want...), s.offsets()
		for r := range s.rows {
			for j := range s.cols {
				sum := float32(dot(a[r*s.rs:], s.ks, b[j:], s.nr, s.depth)) * sb[j] * sa[r]
				if s.add {
					sum += want[off[r]+j]
				}
				want[off[r]+j] = sum
			}
		}
		k.Run(s.depth, a, s.rs, s.ks, b, got, &off, sa, sb, s.rows, s.cols, s.add)
		equal(t, "int16", s, got, want)
	})
}

func dot(a []uint32, as int, b []uint32, bs, n int) (sum int32) {
	for l := range n {
		x, y := a[l*as], b[l*bs]
		sum += int32(int16(x))*int32(int16(y)) + int32(int16(x>>16))*int32(int16(y>>16))
	}
	return sum
}

// equal compares all of C, also what nobody should write.
func equal(t *testing.T, name string, s shape, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %+v: float %d of C is %v, want %v", name, s, i-guard, got[i], want[i])
		}
	}
}

// TestShortSlices: no kernel leaves its slices; of one that is a number too short it panics.
func TestShortSlices(t *testing.T) {
	const depth = 3
	for _, k := range All() {
		s := newShape(k.MR, k.NR, depth-1, uint8(k.MR-1), uint8(k.NR-1), false, false)
		panics(t, k.Name, []string{"", "a", "b", "c"}, func(short string) {
			n := lengths(s, short)
			off := s.offsets()
			k.Run(s.depth, make([]float32, n["a"]), s.rs, s.ks, make([]float32, n["b"]), make([]float32, n["c"]), &off, s.rows, s.cols, false)
		})
	}
	k, ok := Int16()
	if !ok {
		return
	}
	s := newShape(k.MR, k.NR, depth-1, uint8(k.MR-1), uint8(k.NR-1), false, false)
	panics(t, "int16", []string{"", "a", "b", "c", "sa", "sb"}, func(short string) {
		n := lengths(s, short)
		off := s.offsets()
		k.Run(s.depth, make([]uint32, n["a"]), s.rs, s.ks, make([]uint32, n["b"]), make([]float32, n["c"]), &off, make([]float32, n["sa"]), make([]float32, n["sb"]), s.rows, s.cols, false)
	})
}

// lengths are those that the operands of a kernel need, but for one of them.
func lengths(s shape, short string) map[string]int {
	off := s.offsets()
	n := map[string]int{"a": s.floats(), "b": s.depth * s.nr, "c": off[0] + s.cols, "sa": s.rows, "sb": s.nr}
	n[short]--
	return n
}

// panics runs f with each operand short in turn, which it must not survive, but for none.
func panics(t *testing.T, name string, operands []string, f func(short string)) {
	t.Helper()
	for _, short := range operands {
		func() {
			defer func() {
				if got := recover() != nil; got != (short != "") {
					t.Errorf("%s: panics is %t where %q is short", name, got, short)
				}
			}()
			f(short)
		}()
	}
}
