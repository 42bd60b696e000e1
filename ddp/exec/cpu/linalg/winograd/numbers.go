package winograd

import "ebtrain/ddp/exec/cpu/linalg/micro"

// numbers is what transformed images and filters are in memory, and how they are
// multiplied: float32s, or int16s with scales. Whatever they are, V, U and Z are
// slices of float32, words of 32 bits, which only numbers look into.
type numbers interface {
	// perWord is how many numbers that are neighbours in depth share a word.
	perWord() int
	// scales is the words of the scales of n vectors.
	scales(n int) int
	// multiply is c (+)= a·b for a panel b and any number of rows, as wide as a panel
	// in c (micro.Kernel.Run has the rest); sa and sb are the scales of the rows of a
	// and of the columns of b.
	multiply(depth int, a []float32, rs, ks int, b, c []float32, off *[micro.MaxMR]int, sa, sb []float32, rows, cols int, add bool)

	// stagedTile is the floats of stage that packTile and packFilter need.
	stagedTile(k *correlation, c *correlated) int
	// packTile makes row t of V, of all points, from a tile.
	packTile(k *correlation, ws *workspace, v, stage []float32, t, tile int)
	// filterParts is into how many parts the packing of a panel is cut, and
	// packFilter makes one of them in u, panel j of U.
	filterParts(k *correlation, c *correlated) int
	packFilter(k *correlation, ws *workspace, u, stage []float32, j, part int)

	// sumTiles is how many tiles a gradient sums up at a time, gradientBlock how
	// many it has in a block, for some that would be best.
	sumTiles() int
	gradientBlock(block, tiles int) int
	// stagedSlab is the floats that a thread needs for packGradient, which does one
	// of gradientChunks parts of V and Z of a block.
	stagedSlab(k *gradient) int
	gradientChunks(k *gradient) int
	packGradient(k *gradient, ws *workspace, chunk int)
}

// numbers are those of problems that may or may not be multiplied as bfloat16.
func (i *isa) numbers(bf16 bool) numbers {
	if bf16 && i.int16s != nil {
		return i.int16s
	}
	return &float32s{i.kernel}
}

// from is scales from the i-th on, where there are any.
func from(scales []float32, i int) []float32 {
	if len(scales) == 0 {
		return nil
	}
	return scales[i:]
}
