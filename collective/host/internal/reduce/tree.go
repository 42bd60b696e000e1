package reduce

import (
	"math/bits"

	"ebtrain/collective"
)

type number interface {
	float32 | float64 | int32 | int64 | uint8
}

// run walks the vectors block by block.
func run[T number](j Job, dst []byte, srcs [][]byte, n int, s *Scratch) {
	out := as[T](dst)[:n]
	t := tree[T]{op: j.Op, srcs: srcs}
	var levels []T
	if len(srcs) > 4 { // two blocks for each level of the tree above the leaves of four
		levels = as[T](s.bytes(2 * block * 8 * bits.Len(uint(len(srcs)))))
	}
	for t.lo = 0; t.lo < n; t.lo += block {
		t.hi = min(t.lo+block, n)
		t.into(out[t.lo:t.hi], 0, len(srcs), levels)
		if j.Op == collective.Mean && j.Div > 1 {
			divide(out[t.lo:t.hi], j.Div)
		}
	}
}

// tree is a reduction of elements lo to hi of the sources.
type tree[T number] struct {
	op     collective.Op
	srcs   [][]byte
	lo, hi int
}

// leaf is the elements of source i.
func (t *tree[T]) leaf(i int) []T { return as[T](t.srcs[i])[t.lo:t.hi] }

// into leaves the reduction of sources a to b in dst, which may be one of them.
func (t *tree[T]) into(dst []T, a, b int, levels []T) {
	if t.op == collective.Max || t.op == collective.Min {
		t.extreme(dst)
		return
	}
	switch b - a {
	case 1:
		copy(dst, t.leaf(a))
	case 2:
		add2(dst, t.leaf(a), t.leaf(a+1))
	case 3:
		add3(dst, t.leaf(a), t.leaf(a+1), t.leaf(a+2))
	case 4:
		add4(dst, t.leaf(a), t.leaf(a+1), t.leaf(a+2), t.leaf(a+3))
	default:
		half := a + 1<<(bits.Len(uint(b-a-1))-1)
		left, right, rest := levels[:len(dst)], levels[block:block+len(dst)], levels[2*block:]
		t.into(left, a, half, rest)
		t.into(right, half, b, rest)
		add2(dst, left, right)
	}
}

// extreme is the largest or smallest. The order does not matter, so it folds
// from the source that dst may be, if any, to the others.
func (t *tree[T]) extreme(dst []T) {
	own := 0
	for i := range t.srcs {
		if len(dst) > 0 && &t.leaf(i)[0] == &dst[0] {
			own = i
		}
	}
	copy(dst, t.leaf(own))
	for i := range t.srcs {
		if i == own {
			continue
		}
		if t.op == collective.Max {
			max2(dst, dst, t.leaf(i))
		} else {
			min2(dst, dst, t.leaf(i))
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
//		dst[i] = collective.FromBF16(src[i])
//	}
func widen(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = collective.FromBF16(src[i])
	}
}

// narrow rounds each element of src to the nearest BF16, ties to even. A NaN
// stays a NaN.
func narrow(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = collective.ToBF16(src[i])
	}
}
