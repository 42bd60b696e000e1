package winograd

import "unsafe"

// Transformed numbers as 16-bit integers. Where a problem may be multiplied as
// bfloat16, the vectors that are multiplied with each other are scaled, each to
// the same Euclidean norm, and rounded. Two numbers that are neighbours in depth
// share a word: the micro-kernel multiplies a pair in the time of one float32.
//
// By Cauchy and Schwarz no sum of products, in any order, is more than the
// product of the norms, so it fits into 32 bits; and none of the numbers is more
// than the norm, so it fits into 16. Rounding moves every number of a vector by
// at most half of 1/maxNorm of its norm; a result is then off by a tenth to a half
// of what it is with operands rounded to bfloat16 (TestAsExactAsBF16).
const (
	// maxNorm leaves room for rounding below 2¹⁵.
	maxNorm = 32700
	// minSquares is the sum of squares that a row counts as having at least.
	// Vectors of a smaller norm than 1e-15 lose digits; one whose squares
	// overflow, 1e19 and more, yields infinities or NaN, as one that has them.
	minSquares = 1e-30
)

// rows are rows of vectors to be scaled, each to a norm of its own, and to be
// rounded. Steps are in bytes. The assembly knows this layout.
type rows struct {
	dst       unsafe.Pointer // words
	dstStep   int
	src       unsafe.Pointer // vectors of float32
	srcStep   int
	scales    unsafe.Pointer // what undoes the scale of each row
	scaleStep int
	vectors   int // of a row, at least 1
	rows      int // at least 1
}

// words sees float32 as what integers are kept in.
func words(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}
