package pointwise

import (
	"ebtrain/ddp/exec/cpu/pointwise/machine"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// summing says how the machine does a sum.
type summing uint8

const (
	byLoops   summing = iota // not at all: the loops do it
	toOne                    // each number of a strip has a sum, all go into one result
	toColumns                // each number of a block has a sum; the result's columns repeat in a block
	toPieces                 // a block adds to a piece of the result
)

// summingOf says how the machine does reduction r of blocks in that order.
func summingOf(r plan.Reduction, o order) summing {
	switch {
	case r.Fn != graph.ReduceSum:
	case r.Scalar():
		return toOne
	case o.repeats(r.Access):
		return toColumns
	case o.inRuns(r.Access, 1):
		return toPieces
	}
	return byLoops
}

// sumBytes is the memory that a thread's sums in the machine need.
func (k *fused[T, A]) sumBytes() (bytes int) {
	for i := range k.sums {
		bytes += k.sums[i].lanes(k.block) * 8
	}
	return bytes
}

// lanes is the number of sums that the machine needs for s.
func (s *sum[T, A]) lanes(block int) int {
	switch s.summing {
	case toOne:
		return machine.Width
	case toColumns:
		return block
	}
	return 0
}

// fold adds what the machine has summed in part w to the part's results.
func (k *fused[T, A]) fold(ln *lane[T], w int) {
	if ln.linked == nil {
		return
	}
	for i, acc := range ln.linked.acc {
		if acc == nil {
			continue
		}
		d := k.sums[i].part[w]
		for len(acc) > 0 {
			n := min(len(d), len(acc))
			for c, v := range acc[:n] {
				d[c] += A(v)
			}
			acc = acc[n:]
		}
	}
}

// clearSums prepares the machine's sums for a part.
func (l *linked) clearSums() {
	for _, acc := range l.acc {
		clear(acc)
	}
}
