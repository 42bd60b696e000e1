// Package micro holds the micro-kernels of matrix products C (+)= A·B: some rows and
// columns of C, a micro-tile, stay in registers while a loop runs over the depth k.
//
//	         b: a panel of columns     c: rows anywhere in memory
//	         k rows, BS apart          off[0] → ████ NR
//	         ████████                  off[1] → ████
//	         ████████                    …      MR rows
//	a: MR rows, any strides
//	   (row, depth) at a[row·RS + depth·KS]
//
// Which there are, by what the processor has (found out at run time, but for the tag
// noasm, which leaves the one in plain Go):
//
//	              MR × NR   narrow    numbers          registers
//	AVX-512       12 × 32   24 × 16   float32          24 sums, 1 or 2 of b, up to 4 of a
//	AVX512_VNNI   12 × 32             16-bit integers  24 sums of 32 bits, 2 of b, 6 of a
//	AVX2 and FMA   6 × 16   12 × 8    float32          12 sums, 1 or 2 of b, 2 of a
//	NEON (arm64)   6 × 16             float32          24 sums, 4 of b, 4 of a
//	any            4 × 4              float32          plain Go, two rows at a time
//
// Each float32 kernel adds up in the order of the depth, one multiply-add a number;
// the one in plain Go rounds the product, too, where the compiler does not fuse. So a
// number of C does not depend on how many rows and columns its micro-tile has.
//
// Kernels keep no state and may be used by any number of goroutines.
package micro

import "unsafe"

// MaxMR is the most rows that a micro-tile of any kernel has.
const MaxMR = 24

// Kernel is a micro-kernel on float32.
type Kernel struct {
	Name   string
	MR, NR int
	// Micro-tiles of up to Narrow columns have up to Tall rows.
	Narrow, Tall int
	// Step is what the rows that are computed are a multiple of: what a says of rows
	// beyond those wanted, up to that, is read, but in no result.
	Step int
	// Masks says that of b no column is read that is not wanted; else a row of b is
	// read up to Narrow, or NR, columns.
	Masks bool
	// Sum computes a micro-tile.
	Sum func(t *Tile)
	// Run is Sum of one segment, with b in rows of NR.
	Run func(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool)
}

// Tile is a micro-tile: for the first Rows rows and Cols columns,
//
//	s := Σ_{i<Segments} Σ_{l<K} A[r*RS + i*Segment + l*KS] * B[(i*K+l)*BS + j]
//	C[Off[r]+j] = s  or, if Add,  C[Off[r]+j] += s
//
// Segments are rows of an image, say: memory in which A goes on at the same stride. K,
// Segments, Rows and Cols are at least 1, and strides at least 0.
type Tile struct {
	A               []float32
	RS, KS, Segment int
	B               []float32
	BS              int
	C               []float32
	Off             *[MaxMR]int
	K, Segments     int
	Rows, Cols      int
	Add             bool
}

// Shape is the most rows and columns of micro-tiles for results of so many columns.
func (k *Kernel) Shape(cols int) (mr, nr int) {
	if cols <= k.Narrow {
		return k.Tall, k.Narrow
	}
	return k.MR, k.NR
}

// check panics if a kernel would leave the slices. It computes rows that are a multiple
// of step, and reads columns of b that are one of width.
func (t *Tile) check(step, width int) {
	rows, cols := (t.Rows+step-1)/step*step, (t.Cols+width-1)/width*width
	_ = t.A[(rows-1)*t.RS+(t.Segments-1)*t.Segment+(t.K-1)*t.KS]
	_ = t.B[(t.Segments*t.K-1)*t.BS+cols-1]
	last := len(t.C) - t.Cols
	for _, o := range t.Off[:t.Rows] {
		if uint(o) > uint(last) || last < 0 {
			_ = t.C[o : o+t.Cols]
		}
	}
}

// Int16Kernel is a micro-kernel on 16-bit integers, two in a word: the first in its
// lower half. Each row of a and each column of b has a scale.
type Int16Kernel struct {
	MR, NR int
	// Run is Kernel.Run on words of two numbers, so k, rs and ks count words, with
	//
	//	s := sa[r] * sb[j] * Σ_{l<k} Σ_{h<2} a[r*rs+l*ks].h * b[l*NR+j].h
	//
	// The inner sum is taken in 32 bits: it must be below 2³¹ for any order of
	// its terms. sb has all NR columns.
	Run func(k int, a []uint32, rs, ks int, b []uint32, c []float32, off *[MaxMR]int, sa, sb []float32, rows, cols int, add bool)
}

// generic is the micro-kernel in plain Go.
var generic = Kernel{Name: "generic", MR: 4, NR: 4, Step: 1, Sum: sumGeneric, Run: runGeneric}

func runGeneric(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	t := Tile{A: a, RS: rs, KS: ks, B: b, BS: 4, C: c, Off: off, K: k, Segments: 1, Rows: rows, Cols: cols, Add: add}
	sumGeneric(&t)
}

func sumGeneric(t *Tile) {
	t.check(1, 4)
	var s [4][4]float32
	for r := 0; r < t.Rows; r += 2 {
		r1 := min(r+1, t.Rows-1) // the last of an odd number is computed twice
		for i := range t.Segments {
			a, b := t.A[i*t.Segment:], t.B[i*t.K*t.BS:]
			s[r], s[r1] = pair(t.K, a[r*t.RS:], a[r1*t.RS:], t.KS, b, t.BS, s[r], s[r1])
		}
	}
	for r := range t.Rows {
		row := t.C[t.Off[r] : t.Off[r]+t.Cols]
		for j := range row {
			if t.Add {
				row[j] += s[r][j]
			} else {
				row[j] = s[r][j]
			}
		}
	}
}

// pair adds to two rows of four: as many sums as plain Go keeps in registers.
func pair(k int, a0, a1 []float32, ks int, b []float32, bs int, s0, s1 [4]float32) (t0, t1 [4]float32) {
	p0, p1, p2, p3 := s0[0], s0[1], s0[2], s0[3]
	q0, q1, q2, q3 := s1[0], s1[1], s1[2], s1[3]
	for l, i, n := 0, 0, 0; l < k; l, i, n = l+1, i+ks, n+bs {
		w := (*[4]float32)(b[n:])
		x, y := a0[i], a1[i]
		p0 += x * w[0]
		p1 += x * w[1]
		p2 += x * w[2]
		p3 += x * w[3]
		q0 += y * w[0]
		q1 += y * w[1]
		q2 += y * w[2]
		q3 += y * w[3]
	}
	return [4]float32{p0, p1, p2, p3}, [4]float32{q0, q1, q2, q3}
}

// Aligned is n zeros at a 64-byte boundary. The address is looked at once, to count
// the floats to skip, and not kept: memory that make returned does not move, and what
// is returned is a slice of it.
func Aligned(n int) []float32 {
	all := make([]float32, n+16)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all)))%64) / 4
	return all[skip : skip+n : skip+n]
}
