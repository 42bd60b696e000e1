package winograd

import "unsafe"

// Transformed numbers as 16-bit integers. Where a problem may be multiplied as
// bfloat16, rows of V and columns of U, at most depthBlock words deep, are scaled
// to one Euclidean norm and rounded. Two numbers that are neighbours in depth
// share a word: the micro-kernel multiplies a pair in the time of one float32.
//
// By Cauchy and Schwarz no sum of products, in any order, is more than the
// product of the norms, so it fits into 32 bits; and none of the numbers is more
// than the norm, so it fits into 16. Rounding is by the same amount for all
// numbers of a row, 1/maxNorm of its norm, which costs a fifth to a half of the error of
// operands rounded to bfloat16 (TestAsExactAsBF16).
const (
	// maxNorm leaves room for rounding below 2¹⁵.
	maxNorm = 32700
	// minSquares is the sum of squares that a row counts as having at least.
	// Rows whose norm is less than 1e-15 lose digits; a row whose squares
	// overflow, 1e19 and more, yields infinities or NaN, as one that has them.
	minSquares = 1e-30
	// depthBlock is the depth of a block of sums, in words.
	depthBlock = 256
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

// scaleTile writes row t of V of all points.
func (k *correlation) scaleTile(ws *workspace, v, tile []float32, t int) {
	c, points, row := k.c, k.s.points(), k.row(k.c)
	scales := v[points*k.block*row:]
	ws.scale = rows{dstStep: 4 * k.block * row, srcStep: 4 * (c.filter.k + gap), scaleStep: 4 * k.block, rows: points}
	for b := range k.depthBlocks(c) {
		w0 := b * depthBlock
		ws.scale.dst, ws.scale.src = unsafe.Pointer(&v[t*row+w0]), unsafe.Pointer(&tile[2*w0])
		ws.scale.scales = unsafe.Pointer(&scales[b*points*k.block+t])
		ws.scale.vectors = min(depthBlock, k.depth(c)-w0) * 2 / lanes
		k.integers.scaleRows(&ws.scale)
	}
}

// scalePanel makes integers of points [p0,p1) of a panel of U, in place.
func (k *correlation) scalePanel(u []float32, p0, p1 int) {
	c := k.c
	scales := u[c.filter.floats(k.s):]
	for p := p0; p < p1; p++ {
		point := u[p*c.filter.k*k.width:][:c.filter.k*k.width]
		for b := range k.depthBlocks(c) {
			w0 := b * depthBlock
			n := min(depthBlock, k.depth(c)-w0)
			k.integers.scaleColumns(&words(point)[w0*k.width], 4*k.width, &point[2*w0*k.width], 4*k.width, &scales[(b*k.s.points()+p)*k.width], 2*n)
		}
	}
}

// multiplyIntegers is M = V · U of point p.
func (k *correlation) multiplyIntegers(ws *workspace, v, u, m []float32, p, tiles, cols int) {
	c, points, row, mr := k.c, k.s.points(), k.row(k.c), k.integers.tile.MR
	sv, su := v[points*k.block*row:], u[c.filter.floats(k.s):]
	v, u = v[p*k.block*row:], u[p*c.filter.k*k.width:]
	for b := range k.depthBlocks(c) {
		w0 := b * depthBlock
		d := min(depthBlock, k.depth(c)-w0)
		sb := su[(b*points+p)*k.width:][:k.width]
		for t := 0; t < tiles; t += mr {
			k.integers.tile.Run(d, words(v[t*row+w0:]), row, 1, words(u[w0*k.width:]), m[t*k.width:], &ws.off, sv[(b*points+p)*k.block+t:], sb, min(mr, tiles-t), cols, b > 0)
		}
	}
}
