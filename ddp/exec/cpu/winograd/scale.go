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
	// integerDepth is the most words that have a scale in common: as many as
	// let a panel's filters be transformed and scaled within the second cache.
	integerDepth = 128
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

// depthBlocks is how many blocks of words have a scale of their own.
func (k *correlation) depthBlocks(c *correlated) int {
	return (k.depth(c) + integerDepth - 1) / integerDepth
}

// imageScales and filterScales are the scales of V of a block, (depth blocks,
// points, tiles), and of a panel of U, (depth blocks, points, width).
func (k *correlation) imageScales(c *correlated) int {
	if k.integers == nil {
		return 0
	}
	return k.depthBlocks(c) * k.s.points() * k.block
}

func (k *correlation) filterScales(c *correlated) int {
	if k.integers == nil {
		return 0
	}
	return k.depthBlocks(c) * k.s.points() * k.width
}

// staged is the floats of one transformed tile, or of one block of depth of a
// panel, before they are scaled.
func (k *correlation) staged(c *correlated) int {
	if k.integers == nil {
		return 0
	}
	return k.s.points() * max(c.filter.k+gap, min(2*integerDepth, c.filter.k)*k.width+gap)
}

// scaleTile writes row t of V of all points.
func (k *correlation) scaleTile(ws *workspace, v, tile []float32, t int) {
	c, points, row := k.c, k.s.points(), k.row(k.c)
	scales := v[points*k.block*row:]
	ws.scale = rows{dstStep: 4 * k.block * row, srcStep: 4 * (c.filter.k + gap), scaleStep: 4 * k.block, rows: points}
	for b := range k.depthBlocks(c) {
		w0 := b * integerDepth
		ws.scale.dst, ws.scale.src = unsafe.Pointer(&v[t*row+w0]), unsafe.Pointer(&tile[2*w0])
		ws.scale.scales = unsafe.Pointer(&scales[b*points*k.block+t])
		ws.scale.vectors = min(integerDepth, k.depth(c)-w0) * 2 / lanes
		k.integers.scaleRows(&ws.scale)
	}
}

// packIntegers makes block b of depth of panel j of U.
func (k *correlation) packIntegers(ws *workspace, u, stage []float32, j, b int) {
	c, points, depth := k.c, k.s.points(), k.depth(k.c)
	w0 := b * integerDepth
	n := min(integerDepth, depth-w0)
	step := 2*n*k.width + gap
	c.filter.pack(ws, k.s, stage, step, k.weight, j, 2*w0, 2*(w0+n))
	for p := range points {
		scales := u[points*depth*k.width+(b*points+p)*k.width:]
		k.integers.scaleColumns(&words(u)[(p*depth+w0)*k.width], 4*k.width, &stage[p*step], 4*k.width, &scales[0], 2*n)
	}
}

// multiplyIntegers is M = V · U of point p.
func (k *correlation) multiplyIntegers(ws *workspace, v, u, m []float32, p, tiles, cols int) {
	c, points, row, mr := k.c, k.s.points(), k.row(k.c), k.integers.tile.MR
	depth := k.depth(c)
	sv, su := v[points*k.block*row:], u[points*depth*k.width:]
	v, u = v[p*k.block*row:], u[p*depth*k.width:]
	for b := range k.depthBlocks(c) {
		w0 := b * integerDepth
		d := min(integerDepth, depth-w0)
		sb := su[(b*points+p)*k.width:][:k.width]
		for t := 0; t < tiles; t += mr {
			k.integers.tile.Run(d, words(v[t*row+w0:]), row, 1, words(u[w0*k.width:]), m[t*k.width:], &ws.off, sv[(b*points+p)*k.block+t:], sb, min(mr, tiles-t), cols, b > 0)
		}
	}
}
