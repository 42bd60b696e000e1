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
// operand's part in a block is a piece of memory, or one number. If nothing of a good
// length does, run is such a run's: blocks follow it, and its last one is shorter.
func blockOf(f *plan.Fused) (block, run int) {
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
		return min(n, b), 0
	}
	if b := ragged(inner, p, fitting(f)); b > 0 {
		return b, inner
	}
	if q := lcm(p, machine.Width); q <= longest() {
		p = q
	}
	return min(n, max(1, fitting(f)/p)*p), 0
}

// ragged is the length, about that which fits, of blocks that follow runs whose last
// block is shorter; 0 if runs are short, or do not take whole periods of p.
func ragged(inner, p, fits int) int {
	unit := lcm(p, machine.Width)
	if inner < 2*minRun || inner%p != 0 || unit > fits {
		return 0
	}
	of := (inner + fits - 1) / fits
	b := ((inner+of-1)/of + unit - 1) / unit * unit
	if b >= inner {
		return 0
	}
	return b
}

// longest is the length that a block may have for the sake of whole strips. The
// machine's code passes over a block once, so a long one costs it less than the loops
// that do what is left of a strip; loops alone pass once for each instruction.
func longest() int {
	if machine.Available() {
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
type order struct {
	rows, blocks, cols int
	points, block      int // of the group, and of a block
	run                int // that blocks follow, 0 if they are all alike
}

func orderOf(f *plan.Fused, block, run int) order {
	o := order{points: f.Dims.Len(), block: block, run: run}
	for _, s := range f.Sums {
		if q := array.Period(s.Access); q > 2*blockLen && q%block == 0 && run == 0 {
			o.rows, o.blocks, o.cols = o.points/q, o.points/block, q
			break
		}
	}
	return o
}

// ofRun is the number of blocks of a run.
func (o order) ofRun() int { return (o.run + o.block - 1) / o.block }

// count is the number of blocks.
func (o order) count() int {
	if o.run > 0 {
		return o.points / o.run * o.ofRun()
	}
	return (o.points + o.block - 1) / o.block
}

// at is the first point of block number b, and how many it has.
func (o order) at(b int) (at, n int) {
	switch {
	case o.run > 0:
		from := b % o.ofRun() * o.block
		return b/o.ofRun()*o.run + from, min(o.block, o.run-from)
	case o.rows > 0:
		return b%o.rows*o.cols + b/o.rows*o.block, o.block
	}
	return b * o.block, min(o.block, o.points-b*o.block)
}

// repeats says whether an array lies alike in all blocks: what blocks follow takes
// whole periods (see ragged).
func (o order) repeats(a plan.Access) bool {
	q := array.Period(a)
	return q > 0 && o.block%q == 0
}

// inRuns says whether each block of an array is one run of that stride, 0 or 1.
func (o order) inRuns(a plan.Access, stride int) bool {
	return array.InRuns(a, max(o.run, o.block), stride)
}
