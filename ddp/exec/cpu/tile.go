package cpu

import (
	"unsafe"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// The tile machine runs the float32 code of a fused group on 128 numbers at a
// time, which stay in vector registers from one instruction to the next: each
// instruction combines the accumulator with an operand in memory. What is
// needed again later is stored, everything else never leaves the registers.
// The same code, loop by loop (see fused.interpret), is the reference: both do
// the same operations on each number, so the bits are equal; only sums are added
// up in another order.

// tileLen is the number of elements of a tile.
const tileLen = 128

// tileOp is an instruction, as the assembly reads it.
type tileOp struct {
	handler uintptr
	base    uintptr
	counter int // that is added to base
	num     float32
	_       float32
}

// The counters: bytes that are added to an operand's base.
const (
	still   = iota // none
	inBlock        // from the start of the block
	inArray        // from the start of the arrays
	inSums         // from the start of a block of sums, in float64
)

// tileInstr is an instruction before its operand has an address.
type tileInstr struct {
	code tileFn
	reg  int // operand, -1 if none
	num  float32
	own  bool // the operand is num
	sum  int  // 1 + the number of the sum that is added to, else 0
}

// tileLane is the program of one thread.
type tileLane struct {
	ops      []tileOp
	counters [4]uintptr
	segments []loadUse
	acc      [][]float64 // by sum: what the machine adds to, nil if that is the sum itself or another's business
	strips   []sumUse
}

// sumUse is an instruction that adds to a piece of a sum, another for each
// block.
type sumUse struct{ op, sum int }

// loadUse is an instruction whose operand lies elsewhere for each block.
type loadUse struct{ op, load int }

// tileLaneOf gives a program its operands' addresses for one thread, whose sums
// lie at mem.
func (k *fused[T, A]) tileLaneOf(ln *lane[T], mem unsafe.Pointer) *tileLane {
	tl := &tileLane{ops: make([]tileOp, len(k.tiles)), acc: make([][]float64, len(k.sums))}
	for i, c := range k.tiles {
		o := &tl.ops[i]
		o.handler, o.num = tileHandlers[c.code], c.num
		if c.own {
			o.base = uintptr(unsafe.Pointer(&o.num))
		}
		switch {
		case c.reg >= 0:
			k.tileOperand(tl, ln, i, c.reg)
			if c.code == tilePrefetch {
				o.base += uintptr(k.order.cols * 4) // of the strip's next row
			}
		case c.sum > 0:
			mem = k.tileResult(tl, i, c.sum-1, mem)
		}
	}
	return tl
}

// tileOperand gives instruction i the address of register r.
func (k *fused[T, A]) tileOperand(tl *tileLane, ln *lane[T], i, r int) {
	o := &tl.ops[i]
	buffer := func(counter int) {
		o.base, o.counter = uintptr(unsafe.Pointer(unsafe.SliceData(ln.buf[r]))), counter
	}
	if r >= len(k.loads) {
		switch c := &k.code[r-len(k.loads)]; {
		case c.out != nil:
			o.base, o.counter = uintptr(c.out), inArray
		case k.keep[r]:
			buffer(inBlock)
		default:
			buffer(still)
		}
		return
	}
	switch l := &k.loads[r]; {
	case k.number[r]:
		o.base = uintptr(unsafe.Pointer(&ln.num[r]))
	case l.mode == direct:
		o.base, o.counter = uintptr(l.mem), inArray
	case l.mode == segment:
		o.counter = inBlock
		tl.segments = append(tl.segments, loadUse{i, r})
	default:
		buffer(inBlock)
	}
}

// tile runs the machine on the first points of the block at at, in part w, and
// returns how many it did.
func (k *fused[T, A]) tile(ln *lane[T], w, at, n int) int {
	m := n / tileLen
	if m == 0 || ln.tiles == nil {
		return 0
	}
	t := ln.tiles
	for _, s := range t.segments {
		t.ops[s.op].base = uintptr(unsafe.Pointer(unsafe.SliceData(ln.blk[s.load])))
	}
	for _, s := range t.strips {
		sum := &k.sums[s.sum]
		t.ops[s.op].base = uintptr(unsafe.Pointer(&sum.part[w][sum.acc.Offset(at)]))
	}
	t.counters = [4]uintptr{0, 0, uintptr(at) * 4, 0}
	tileRun(&t.ops[0], &t.counters, m)
	return m * tileLen
}

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
	switch p := period(r.Access); {
	case r.Fn != graph.ReduceSum:
	case r.Scalar():
		return toOne
	case p > 0 && block%p == 0:
		return toColumns
	case inRuns(r.Access, block, 1):
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
	o.base, tl.acc[n] = uintptr(mem), span[float64](mem, size)
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
