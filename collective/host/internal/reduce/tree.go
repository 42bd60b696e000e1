package reduce

import (
	"math"
	"math/bits"

	"ebtrain/collective"
)

type number interface {
	float32 | float64 | int32 | int64 | uint8
}

// run walks the vectors block by block.
func run[T number](j Job, dst []byte, srcs [][]byte, n int, s *Scratch) {
	out := as[T](dst)[:n]
	var fixed [8][]T
	views := fixed[:0]
	for _, src := range srcs {
		views = append(views, as[T](src)[:n])
	}
	t := tree[T]{op: j.Op}
	if len(srcs) > 4 { // two blocks for each level of the tree above the leaves of four
		t.scratch = as[T](s.bytes(2 * block * 8 * bits.Len(uint(len(srcs)))))
	}
	cut := make([][]T, len(views))
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		for i, v := range views {
			cut[i] = v[lo:hi]
		}
		t.into(out[lo:hi], cut, t.scratch)
		if j.Op == collective.Mean && j.Div > 1 {
			divide(out[lo:hi], j.Div)
		}
	}
}

type tree[T number] struct {
	op      collective.Op
	scratch []T
}

// into leaves the reduction of srcs in dst, which may be one of srcs.
func (t tree[T]) into(dst []T, srcs [][]T, scratch []T) {
	if t.op == collective.Max || t.op == collective.Min {
		t.extreme(dst, srcs)
		return
	}
	switch len(srcs) {
	case 1:
		copy(dst, srcs[0])
	case 2:
		add2(dst, srcs[0], srcs[1])
	case 3:
		add3(dst, srcs[0], srcs[1], srcs[2])
	case 4:
		add4(dst, srcs[0], srcs[1], srcs[2], srcs[3])
	default:
		half := 1 << (bits.Len(uint(len(srcs)-1)) - 1)
		left, right, rest := scratch[:len(dst)], scratch[block:block+len(dst)], scratch[2*block:]
		t.into(left, srcs[:half], rest)
		t.into(right, srcs[half:], rest)
		add2(dst, left, right)
	}
}

// extreme is the largest or smallest. The order does not matter, so it folds
// from the source that dst may be, if any, to the others.
func (t tree[T]) extreme(dst []T, srcs [][]T) {
	own := 0
	for i, s := range srcs {
		if len(dst) > 0 && &s[0] == &dst[0] {
			own = i
		}
	}
	copy(dst, srcs[own])
	for i, s := range srcs {
		if i == own {
			continue
		}
		if t.op == collective.Max {
			max2(dst, dst, s)
		} else {
			min2(dst, dst, s)
		}
	}
}

// divide is
//
//	for i := range x {
//		x[i] /= T(n)
//	}
//
// Dividing by a power of two is done by the exact reciprocal.
func divide[T number](x []T, n int) {
	if n&(n-1) == 0 {
		if r := reciprocal[T](n); r != 0 {
			scale(x, r)
			return
		}
	}
	d := T(n)
	for i := range x {
		x[i] /= d
	}
}

// reciprocal is 1/n, or 0 for integers.
func reciprocal[T number](n int) T {
	one := T(1)
	return one / T(n)
}

// widen is
//
//	for i := range dst {
//		dst[i] = math.Float32frombits(uint32(src[i]) << 16)
//	}
func widen(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(src[i]) << 16)
	}
}

// narrow rounds each element of src to the nearest BF16, ties to even. A NaN
// stays a NaN.
func narrow(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		b := math.Float32bits(src[i])
		if b&0x7fffffff > 0x7f800000 {
			dst[i] = uint16(b>>16) | 0x40
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}
