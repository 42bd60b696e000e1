// Package micro holds the micro-kernels of matrix products C (+)= A·B: MR rows by NR
// columns of C, a micro-tile, stay in registers while a loop runs over the depth k.
//
//	         b: a packed panel         c: rows anywhere in memory
//	         k rows of NR              off[0] → ████ NR
//	         ████████                  off[1] → ████
//	         ████████                    …      MR rows
//	a: MR rows, any strides
//	   (row, depth) at a[row·rs + depth·ks]
//
// Which there are, by what the processor has (found out at run time, but for the tag
// noasm, which leaves the one in plain Go):
//
//	              MR × NR   numbers          registers
//	AVX-512       12 × 32   float32          24 sums, 2 of b, 6 of a
//	AVX512_VNNI   12 × 32   16-bit integers  the same, sums of 32 bits
//	AVX2 and FMA   6 × 16   float32          12 sums, 2 of b, 2 of a
//	NEON (arm64)   6 × 16   float32          24 sums, 4 of b, 4 of a
//	any            4 × 4    float32          plain Go, two rows at a time
//
// Each float32 kernel adds up in the order of the depth, one multiply-add a number;
// the one in plain Go rounds the product, too, where the compiler does not fuse.
//
// Kernels keep no state and may be used by any number of goroutines.
package micro

import "unsafe"

// MaxMR is the most rows that a micro-tile of any kernel has.
const MaxMR = 12

// Kernel is a micro-kernel on float32.
type Kernel struct {
	Name   string
	MR, NR int
	// Run is, for the first rows rows and cols columns,
	//
	//	s := Σ_{l<k} a[r*rs+l*ks] * b[l*NR+j]
	//	c[off[r]+j] = s  or, if add,  c[off[r]+j] += s
	//
	// It may read all MR rows of a. k is at least 1, 1 ≤ rows ≤ MR and
	// 1 ≤ cols ≤ NR.
	Run func(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool)
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
var generic = Kernel{Name: "generic", MR: 4, NR: 4, Run: kernelGeneric}

func kernelGeneric(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	var s [4][4]float32
	for r := 0; r < rows; r += 2 {
		r1 := min(r+1, rows-1) // the last of an odd number is computed twice
		s[r], s[r1] = pair(k, a[r*rs:], a[r1*rs:], ks, b)
	}
	for r := range rows {
		row := c[off[r] : off[r]+cols]
		for j := range row {
			if add {
				row[j] += s[r][j]
			} else {
				row[j] = s[r][j]
			}
		}
	}
}

// pair computes two rows of four: as many sums as plain Go keeps in registers.
func pair(k int, a0, a1 []float32, ks int, b []float32) (s0, s1 [4]float32) {
	var p0, p1, p2, p3, q0, q1, q2, q3 float32
	for l, i := 0, 0; l < k; l, i = l+1, i+ks {
		w := (*[4]float32)(b[4*l:])
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
