// Package micro holds the micro-kernels of matrix products: a few rows by a few
// columns of C that stay in registers while a loop runs over the depth. They
// come in AVX-512, AVX2 and plain Go; All says which ones this CPU can run.
// With the tag noasm there is only the one in plain Go.
//
// Kernels keep no state and may be used by any number of goroutines.
package micro

import "unsafe"

// MaxMR is the most rows that a tile of any kernel has.
const MaxMR = 12

// Kernel computes MR×NR elements of C in registers.
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

// Scaled computes MR×NR elements of C in registers from 16-bit integers, two in
// a word: the first in its lower half. Each row of a and each column of b has a
// scale.
type Scaled struct {
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
var generic = Kernel{Name: "generic", MR: 4, NR: 4, Run: tileGeneric}

func tileGeneric(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
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

// Aligned is n zeros at a 64-byte boundary.
func Aligned(n int) []float32 {
	all := make([]float32, n+16)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all)))%64) / 4
	return all[skip : skip+n : skip+n]
}
