package winograd

import "unsafe"

// lanes is the number of channels of a vector: all transforms work on vectors.
const lanes = 16

// pass is a 1-D transform of many sequences of numbers at once: of each of so many
// columns, and of 16 channels times so many vectors. Number i of a sequence is at
//
//	src[i] + vector·srcVector + column·srcCol
//
// and number i of its result at
//
//	dst + vector·dstVector + column·dstCol + i·dstPoint
//
// All strides are in bytes. The assembly reads it by its fields' names.
type pass struct {
	dst                  unsafe.Pointer
	dstPoint             int
	dstCol, srcCol       int
	dstVector, srcVector int
	cols, vectors        int // at least 1
	consts               *constants
	src                  [6]unsafe.Pointer
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
// one vector of channels to the next, in floats.
type strides struct{ down, across, vector int }

// square is dst = L · src · Lᵀ for vectors of 16 channels, at most maxVectors:
// src (L.cols × L.cols) becomes dst (L.rows × L.rows). Only columns [from,to) of
// src are read, the others are zeros; rows are where column from of each row is.
func (l *linear) square(p *pass, rows *[6]unsafe.Pointer, from, to int, ss strides, dst unsafe.Pointer, ds strides, vectors int, tmp *[tmpLen]float32) {
	const f, v = 4, 4 * lanes
	row := l.cols * v // of tmp, which is (vectors, L.rows, L.cols)
	if from > 0 || to < l.cols {
		clear(tmp[:vectors*l.rows*l.cols*lanes])
	}
	p.consts, p.vectors = l.consts, vectors
	if from < to {
		p.dst, p.dstPoint, p.dstCol, p.dstVector = unsafe.Pointer(&tmp[from*lanes]), row, v, l.rows*row
		p.srcCol, p.srcVector, p.cols = f*ss.across, f*ss.vector, to-from
		for i := range l.cols {
			p.src[i] = rows[i]
		}
		l.run(p)
	}
	p.dst, p.dstPoint, p.dstCol, p.dstVector = dst, f*ds.across, f*ds.down, f*ds.vector
	p.srcCol, p.srcVector, p.cols = row, l.rows*row, l.rows
	for i := range l.cols {
		p.src[i] = unsafe.Pointer(&tmp[i*lanes])
	}
	l.run(p)
}

const (
	// maxVectors is how many vectors of channels are transformed at a time: their
	// intermediate result stays in the first cache.
	maxVectors = 4
	tmpLen     = maxVectors * 6 * 6 * lanes
)
