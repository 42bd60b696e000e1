package cpu

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// tileSums says how the machine can do a sum.
type tileSums uint8

const (
	notInTiles tileSums = iota
	toOne               // each number of a tile has a sum, all go into one result
	toColumns           // each number of a block has a sum; the result's columns repeat in a block
	toStrip             // a block adds to a piece of the result
)

// tileSumOf says how the machine can do reduction r of blocks of that length.
func tileSumOf(r plan.Reduction, block int) tileSums {
	switch p := array.Period(r.Access); {
	case r.Fn != graph.ReduceSum:
	case r.Scalar():
		return toOne
	case p > 0 && block%p == 0:
		return toColumns
	case array.InRuns(r.Access, block, 1):
		return toStrip
	}
	return notInTiles
}

// tileSumBytes is the memory that a thread's sums need.
func (k *fused[T, A]) tileSumBytes() (bytes int) {
	for i := range k.sums {
		bytes += k.sums[i].tileLen(k.block) * 8
	}
	return bytes
}

// tileLen is the number of sums that the machine needs for s.
func (s *sum[T, A]) tileLen(block int) int {
	switch s.tiles {
	case toOne:
		return tileLen
	case toColumns:
		return block
	}
	return 0
}

// tileResult gives instruction i the place of sum number n, and returns the
// memory that is left.
func (k *fused[T, A]) tileResult(tl *tileLane, i, n int, mem unsafe.Pointer) unsafe.Pointer {
	o, s := &tl.ops[i], &k.sums[n]
	if s.tiles != toOne {
		o.counter = inSums
	}
	if s.tiles == toStrip {
		tl.strips = append(tl.strips, sumUse{i, n})
		return mem
	}
	size := s.tileLen(k.block)
	o.base, tl.acc[n] = uintptr(mem), array.Span[float64](mem, size)
	return unsafe.Add(mem, size*8)
}

// fold adds what the machine has summed in part w to the part's results.
func (k *fused[T, A]) fold(ln *lane[T], w int) {
	if ln.tiles == nil {
		return
	}
	for i, acc := range ln.tiles.acc {
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
func (t *tileLane) clearSums() {
	for _, acc := range t.acc {
		clear(acc)
	}
}
