package pointwise

import (
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/machine"
	"ebtrain/ddp/exec/plan"
)

// blockLen is about the number of elements that a fused group works on at a
// time: small enough for the registers of a group to stay in the first-level
// cache.
const blockLen = 1024

// blockOf is the length of a group's blocks. Where operands repeat after a few
// elements it is a multiple of that, so that they are the same in each block;
// where an operand is walked in longer runs it divides them, so that the
// operand's part in a block is a piece of memory, or one number.
func blockOf(f *plan.Fused) int {
	n := max(f.Dims.Len(), 1)
	p, inner := 1, 0
	look := func(a plan.Access) {
		switch q := array.Period(a); {
		case a.Full() || a.Scalar():
		case q > 0 && q <= 2*blockLen:
			if m := lcm(p, q); m <= 2*blockLen {
				p = m
			}
		default:
			inner = gcd(inner, a.Dims[len(a.Dims)-1])
		}
	}
	for _, a := range f.Loads {
		look(a)
	}
	for _, s := range f.Sums {
		look(s.Access)
	}
	if b := divisor(inner, p); b > 0 {
		return min(n, b)
	}
	if q := lcm(p, machine.Width); q <= longest() {
		p = q
	}
	return min(n, max(1, fitting(f)/p)*p)
}

// longest is the length that a block may have for the sake of whole strips. The
// machine's code passes over a block once, so a long one costs it less than the loops
// that do what is left of a strip; loops alone pass once for each instruction.
func longest() int {
	if machine.Available {
		return 5 * blockLen
	}
	return 2 * blockLen
}

// fitting is a number of points, of blockLen at most, for which what a group
// has in hand stays in the first-level cache.
func fitting(f *plan.Fused) int {
	bytes := 4 * len(f.Stores) // of a point
	for _, a := range f.Loads {
		if !a.Scalar() {
			bytes += 4
		}
	}
	for _, s := range f.Sums {
		if !s.Scalar() {
			bytes += 8
		}
	}
	return min(blockLen, max(2*machine.Width, l1Bytes/max(1, bytes)))
}

// l1Bytes is the share of a first-level cache of 32 KB that blocks may take:
// the rest is for what the processor fetches ahead.
const l1Bytes = 14 << 10

// divisor is the best block length that divides inner: about blockLen, and a
// multiple of p and of a strip if that can be. It is 0 if all are short.
func divisor(inner, p int) int {
	best, rank := 0, 0
	for b := minRun; b <= min(inner, blockLen*5/4); b++ {
		if inner%b != 0 {
			continue
		}
		r := 1
		if b%machine.Width == 0 {
			r++
		}
		if b%p == 0 {
			r += 2
		}
		if r >= rank {
			best, rank = b, r
		}
	}
	return best
}

// minRun is the length below which runs are not worth blocks of their own.
const minRun = 64

func lcm(a, b int) int { return a / gcd(a, b) * b }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// order is the order of blocks. A sum over the rows of a wide matrix goes down
// one band of columns, a block wide, after the other, so that the band's sums stay
// in the first-level cache; rows and cols are then the matrix's, else 0.
type order struct{ rows, blocks, cols int }

func orderOf(f *plan.Fused, block int) order {
	for _, s := range f.Sums {
		if q := array.Period(s.Access); q > 2*blockLen && q%block == 0 {
			return order{rows: f.Dims.Len() / q, blocks: f.Dims.Len() / block, cols: q}
		}
	}
	return order{}
}

// at is the first point of block number b.
func (o order) at(b, block int) int {
	if o.rows == 0 {
		return b * block
	}
	return b%o.rows*o.cols + b/o.rows*block
}
