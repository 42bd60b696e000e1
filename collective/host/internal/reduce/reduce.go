// Package reduce combines vectors of equal length element by element.
//
// The order of additions is fixed and is part of the contract: the balanced
// binary tree over the sources, which cuts n sources after the largest power
// of two below n. So four sources are (a+b)+(c+d), and the sum of eight is the
// sum of two sums of four: a group of 2ᵏ ranks continues the tree that one
// rank with 2ᵏ shards would have walked.
//
// BF16 is accumulated in F32 and rounded once, to nearest even. Integer sums
// wrap. Max and Min propagate NaN.
//
// Functions have no state but the Scratch they are given; one goroutine at a
// time uses a Scratch.
package reduce

import (
	"fmt"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/subnormal"
)

// block is how many elements are combined at a time, so that a block of each
// source and of the scratch stays in the first-level cache.
const block = 1024

// Scratch is working memory that grows to what is needed and is kept.
type Scratch struct {
	words []uint64 // levels of the tree
	wide  []float32
	views [][]byte
	tiles [][]byte
}

// Accumulator is the type in which partial results of t are kept.
func Accumulator(t collective.DType) collective.DType {
	if t == collective.BF16 {
		return collective.F32
	}
	return t
}

// Job is one reduction.
//
//	for i := range dst {
//		dst[i] = op over all s of srcs[s][i], divided by Div if Div > 1
//	}
//
// From and To are the types of the sources and of the destination; they are
// equal, or one is BF16 and the other is F32. Every source has as many
// elements as dst. dst may be one of the sources; otherwise it overlaps none.
type Job struct {
	From, To collective.DType
	Op       collective.Op
	Div      int // number of ranks for a Mean; 0 or 1 means no division
	// Zeros says that subnormal numbers count as zeros, whoever does the job.
	Zeros bool
}

// Within is a part of j: what some of the sources give, not divided.
func (j Job) Within() Job {
	j.To, j.Div = j.From, 0
	return j
}

// Run does j. It panics if a length or a type is not as described.
func (j Job) Run(dst []byte, srcs [][]byte, s *Scratch) {
	subnormal.Counting(j.Zeros, func() { j.run(dst, srcs, s) })
}

func (j Job) run(dst []byte, srcs [][]byte, s *Scratch) {
	n := len(dst) / j.To.Size()
	for i, src := range srcs {
		if len(src) != n*j.From.Size() {
			panic(fmt.Sprintf("reduce: source %d has %d bytes, expected %d", i, len(src), n*j.From.Size()))
		}
	}
	switch {
	case j.From == collective.BF16 || j.To == collective.BF16:
		j.halves(dst, srcs, n, s)
	case j.From != j.To:
		panic("reduce: from " + j.From.String() + " to " + j.To.String())
	default:
		j.same(dst, srcs, n, s)
	}
}

func (j Job) same(dst []byte, srcs [][]byte, n int, s *Scratch) {
	switch j.To {
	case collective.F32:
		run[float32](j, dst, srcs, n, s)
	case collective.F64:
		run[float64](j, dst, srcs, n, s)
	case collective.I32:
		run[int32](j, dst, srcs, n, s)
	case collective.I64:
		run[int64](j, dst, srcs, n, s)
	case collective.U8:
		run[uint8](j, dst, srcs, n, s)
	}
}

// halves is Run where sources, destination or both are BF16.
func (j Job) halves(dst []byte, srcs [][]byte, n int, s *Scratch) {
	k := len(srcs)
	if len(s.wide) < (k+1)*block { // k converted sources, then the result
		s.wide = make([]float32, (k+1)*block)
	}
	wide := s.wide
	views := s.slices(k)
	for lo := 0; lo < n; lo += block {
		m := min(block, n-lo)
		for i, src := range srcs {
			w := wide[i*block : i*block+m]
			if j.From == collective.BF16 {
				widen(w, as[uint16](src)[lo:lo+m])
			} else {
				copy(w, as[float32](src)[lo:lo+m])
			}
			views[i] = bytesOf(w)
		}
		out := wide[k*block : k*block+m]
		inner := Job{From: collective.F32, To: collective.F32, Op: j.Op, Div: j.Div}
		run[float32](inner, bytesOf(out), views, m, s)
		if j.To == collective.BF16 {
			narrow(as[uint16](dst)[lo:lo+m], out)
		} else {
			copy(as[float32](dst)[lo:lo+m], out)
		}
	}
}

// bytes is n bytes of working memory.
func (s *Scratch) bytes(n int) []byte {
	if len(s.words) < (n+7)/8 {
		s.words = make([]uint64, (n+7)/8)
	}
	return bytesOf(s.words)[:n]
}

func (s *Scratch) slices(n int) [][]byte {
	if len(s.views) < n {
		s.views = make([][]byte, n)
	}
	return s.views[:n]
}

// as is b as elements of type T. b is aligned to T.
func as[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

func bytesOf[T any](x []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}
