package amx

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

const (
	// lanes is the columns of a panel, and the rows of a tile.
	lanes = 16
	// stepDepth is the depth that one multiplication of tiles goes over.
	stepDepth = 32
	// tileRows is the rows of C of a block: two tiles.
	tileRows = 2 * lanes
	// tileBytes is a tile: 16 rows of 32 bfloat16s, or 16 rows, of two in depth, of
	// 16 columns.
	tileBytes = 1024
	// rowBytes is a row of a tile.
	rowBytes = 64
)

// block is C (32 rows × panels·16 columns) = or += A · B, over some depth.
//
//	             b: a panel of 16 columns      the next, bPanel bytes on
//	             tile, tile, … by step         tile, tile, …
//	a[0] 16 rows        c[0] 16 rows
//	a[1] 16 rows        c[1] 16 rows
//
// The rows of A's tile of step s begin offsets[s] bytes after a, aRow bytes apart;
// those of C cRow bytes apart. Both halves may be the same. The assembly reads it by
// its fields' names.
type block struct {
	steps   int // at least 1
	offsets *int
	a       [2]unsafe.Pointer
	aRow    int
	b       unsafe.Pointer
	bPanel  int
	panels  int // an even number, at least 2
	c       [2]unsafe.Pointer
	cRow    int
	add     bool
}

// kernels are the loops over memory. Steps, places and offsets are in bytes, n is at
// least 1.
type kernels struct {
	// multiply computes n blocks, which lie one after the other.
	multiply func(p *block, n int)
	// round brings n vectors of 16 floats, one after the other, to bfloat16s.
	round func(dst unsafe.Pointer, src *float32, n int)
	// pairs makes rows of B of two rows in depth: of vector i of a and of b, step apart,
	// the bfloat16s in turn, at dst + places[i].
	pairs func(dst unsafe.Pointer, places *int, a, b *float32, step, n int)
	// interleave does so with n times 32 bfloat16s at a and b + offsets[i]: the even
	// ones of both, in turn, go to dst + i·step, the odd ones half further.
	interleave func(dst unsafe.Pointer, half, step int, a, b unsafe.Pointer, offsets *int, n int)
	// gather brings n rows of so many steps, which begin anywhere, to dst and row further:
	// from each, 64 bytes at each offset, one after the other.
	gather    func(dst unsafe.Pointer, row int, rows *unsafe.Pointer, offsets *int, n, steps int)
	transpose transpose.Kernels
}
