package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// int16s are transformed numbers as 16-bit integers. Where a problem may be
// multiplied as bfloat16, the vectors that are multiplied with each other are scaled,
// each to the same Euclidean norm, and rounded. Two numbers that are neighbours in
// depth share a word: the micro-kernel multiplies a pair in the time of one float32.
//
// By Cauchy and Schwarz no sum of products, in any order, is more than the
// product of the norms, so it fits into 32 bits; and none of the numbers is more
// than the norm, so it fits into 16. Rounding moves every number of a vector by
// at most half of 1/maxNorm of its norm; a result is then off by a tenth to a half
// of what it is with operands rounded to bfloat16 (TestAsExactAsBF16).
//
// Numbers are transformed as float32 in a stage, memory of the thread's own in its
// second cache, and leave it as integers. In correlations, vectors are rows of V and
// columns of U, depthBlock numbers of them; the words of V and U are followed by
// their scales. In gradients they are columns of V and Z: slab.go.
type int16s struct {
	kernel       micro.Int16Kernel // of as many rows and columns as the one of float32
	scaleRows    func(*rowScaling)
	scaleColumns func(dst *uint32, dstStep int, src *float32, srcStep int, scales *float32, rows int)
	// prefetch brings so many bytes from each of rows × cols addresses to the
	// first cache: p and those down and across bytes from each other. It reads
	// nothing, so p may be outside of any array, which a pointer may not, and keeps
	// nothing alive and in place: who calls it has the image.
	prefetch func(p uintptr, rows, cols, down, across, bytes int)
}

const (
	// maxNorm leaves room for rounding below 2¹⁵.
	maxNorm = 32700
	// minSquares is the sum of squares that a row counts as having at least.
	// Vectors of a smaller norm than 1e-15 lose digits; one whose squares
	// overflow, 1e19 and more, yields infinities or NaN, as one that has them.
	minSquares = 1e-30
)

// rowScaling is rows of vectors to be scaled, each to a norm of its own, and to be
// rounded. Steps are in bytes. The assembly reads it by its fields' names.
type rowScaling struct {
	dst       unsafe.Pointer // words
	dstStep   int
	src       unsafe.Pointer // vectors of float32
	srcStep   int
	scales    unsafe.Pointer // what undoes the scale of each row
	scaleStep int
	vectors   int // of a row, at least 1
	rows      int // at least 1
}

// words is f as the words that integers are kept in.
func words(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

func (*int16s) perWord() int     { return 2 }
func (*int16s) scales(n int) int { return n }

func (n *int16s) multiply(depth int, a []float32, rs, ks int, b, c []float32, off *[micro.MaxMR]int, sa, sb []float32, rows, cols int, add bool) {
	mr, width := n.kernel.MR, n.kernel.NR
	for r := 0; r < rows; r += mr {
		n.kernel.Run(depth, words(a[r*rs:]), rs, ks, words(b), c[r*width:], off, sa[r:], sb, min(mr, rows-r), cols, add)
	}
}

// stagedTile is one transformed tile, or a block of depth of a panel: what lets the
// filters of a panel be transformed and scaled within the second cache.
func (*int16s) stagedTile(k *correlation, c *correlated) int {
	return k.s.points() * max(c.filter.k+gap, min(depthBlock, c.filter.k)*k.width+gap)
}

func (n *int16s) packTile(k *correlation, ws *workspace, v, stage []float32, t, tile int) {
	c, points, row := k.c, k.s.points(), k.row(k.c)
	k.transform(ws, stage, c.filter.k+gap, tile)
	scales := v[points*k.block*row:]
	ws.scaling = rowScaling{dstStep: 4 * k.block * row, srcStep: 4 * (c.filter.k + gap), scaleStep: 4 * k.block, rows: points}
	for b := range c.depthBlocks() {
		k0 := b * depthBlock
		ws.scaling.dst, ws.scaling.src = unsafe.Pointer(&v[t*row+k0/2]), unsafe.Pointer(&stage[k0])
		ws.scaling.scales = unsafe.Pointer(&scales[b*points*k.block+t])
		ws.scaling.vectors = min(depthBlock, c.filter.k-k0) / lanes
		n.scaleRows(&ws.scaling)
	}
}

// filterParts are the blocks of depth: each has scales of its own.
func (*int16s) filterParts(_ *correlation, c *correlated) int { return c.depthBlocks() }

func (n *int16s) packFilter(k *correlation, ws *workspace, u, stage []float32, j, part int) {
	f, points := &k.c.filter, k.s.points()
	k0 := part * depthBlock
	rows := min(depthBlock, f.k-k0)
	step := rows*k.width + gap
	f.pack(ws, k.s, stage, step, k.weight, j, k0, k0+rows)
	scales := u[points*f.k/2*k.width:]
	for p := range points {
		n.scaleColumns(&words(u)[(p*f.k+k0)/2*k.width], 4*k.width, &stage[p*step], 4*k.width, &scales[(part*points+p)*k.width], rows)
	}
}
