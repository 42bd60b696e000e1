package cpu

import "unsafe"

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
// lie in mem from byte at on.
func (k *fused[T, A]) tileLaneOf(ln *lane[T], mem unsafe.Pointer, at int) *tileLane {
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
			at = k.tileResult(tl, i, c.sum-1, mem, at)
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
