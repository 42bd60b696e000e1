package winograd

import "unsafe"

// A correlation by 16-bit integers (scale.go): rows of V and columns of U are
// scaled, blocks of their depth each for itself. V and U are followed by their
// scales.

// integerDepth is the words of a block of depth: as many as let the filters of a
// panel be transformed and scaled within the second cache.
const integerDepth = 128

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
	n := k.depthBlocks(c) * k.s.points() * k.block
	return (n + lanes - 1) / lanes * lanes // what follows is aligned
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
