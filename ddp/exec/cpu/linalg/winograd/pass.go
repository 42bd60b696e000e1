package winograd

import "unsafe"

// lanes is the number of channels of a vector: all transforms work on vectors.
const lanes = 16

// pass is a 1-D transform of many sequences of vectors at once. A sequence is a
// column of a block; vector i of its input is at
//
//	src[i] + block·srcBlock + column·srcCol
//
// and vector i of its result at
//
//	dst + block·dstBlock + column·dstCol + i·dstPoint
//
// All strides are in bytes. The assembly knows this layout.
type pass struct {
	dst                unsafe.Pointer
	dstPoint           int
	dstCol, srcCol     int
	dstBlock, srcBlock int
	cols, blocks       int // at least 1
	consts             *constants
	src                [6]unsafe.Pointer
}

// constants are the numbers of a map, each eight times: as AVX2 has few registers,
// it takes some of them straight from memory.
type constants [8][8]float32

// linear is a linear map of sequences, and the loop that applies it.
type linear struct {
	rows, cols int // lengths of result and input
	consts     *constants
	run        func(*pass)
}

// strides of an array of vectors: from point to point down and across, and from
// one block of channels to the next, in floats.
type strides struct{ down, across, block int }

// square is dst = L · src · Lᵀ for blocks of 16 channels, at most maxBlocks:
// src (L.cols × L.cols) becomes dst (L.rows × L.rows). Only columns [from,to) of
// src are read, the others are zeros; rows are where column from of each row is.
func (l *linear) square(p *pass, rows *[6]unsafe.Pointer, from, to int, ss strides, dst unsafe.Pointer, ds strides, blocks int, tmp *[tmpLen]float32) {
	const f, v = 4, 4 * lanes
	row := l.cols * v // of tmp, which is (blocks, L.rows, L.cols)
	if from > 0 || to < l.cols {
		clear(tmp[:blocks*l.rows*l.cols*lanes])
	}
	p.consts, p.blocks = l.consts, blocks
	if from < to {
		p.dst, p.dstPoint, p.dstCol, p.dstBlock = unsafe.Pointer(&tmp[from*lanes]), row, v, l.rows*row
		p.srcCol, p.srcBlock, p.cols = f*ss.across, f*ss.block, to-from
		for i := range l.cols {
			p.src[i] = rows[i]
		}
		l.run(p)
	}
	p.dst, p.dstPoint, p.dstCol, p.dstBlock = dst, f*ds.across, f*ds.down, f*ds.block
	p.srcCol, p.srcBlock, p.cols = row, l.rows*row, l.rows
	for i := range l.cols {
		p.src[i] = unsafe.Pointer(&tmp[i*lanes])
	}
	l.run(p)
}

const (
	// maxBlocks is how many blocks of channels are transformed at a time: their
	// intermediate result stays in the first cache.
	maxBlocks = 4
	tmpLen    = maxBlocks * 6 * 6 * lanes
)
