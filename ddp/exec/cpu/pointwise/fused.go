package pointwise

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/machine"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
)

// fused runs a group block by block: T is the type computed in, A the type of
// sums.
type fused[T, A array.Number] struct {
	jobs   *threads.Jobs
	n      int // points
	block  int // points in a block
	order  order
	work   int
	loads  []load[T]
	instrs []instr[T]
	stores []store[T]
	sums   []sum[T, A]
	round  func([]T) // nil if T is exact
	lanes  []lane[T]

	code   []machine.Instr // nil if the machine cannot run the group
	number []bool          // by register: one number, the same for all points of a block
	keep   []bool          // by register: a sum or store reads it

	buffer  []int // by register: the number of its buffer in a lane, -1 if it has none
	buffers int
}

// mode is how a load gets its block.
type mode uint8

const (
	direct   mode = iota // the memory itself
	constant             // a number of the graph: filled for each part
	repeated             // the same in each block: filled for each part
	segment              // for each block a piece of the memory itself
	spread               // for each block one number
	general              // filled for each block
)

// load brings an operand into its register.
type load[T array.Number] struct {
	mode  mode
	plain bool // the operand's elements are of type T
	mem   unsafe.Pointer
	acc   plan.Access
	read  array.Reader[T]
	reg   int
	value T    // of a constant
	array bool // needed as a block, not only as a number
}

// instr computes register dst; x, y, z are registers.
type instr[T array.Number] struct {
	dst, x, y, z int
	a            T
	f1           vec.Unary[T]
	f2           vec.Binary[T]
	fs           vec.BinaryNumber[T] // of array x and number y
	f3           vec.Select[T]
	out          unsafe.Pointer // where dst lies, nil for a buffer of the lane
}

// store writes a register to memory at the end of a block.
type store[T array.Number] struct {
	reg   int
	mem   unsafe.Pointer
	write array.Writer[T]
}

// lane is the state of one thread.
type lane[T array.Number] struct {
	blk    [][]T // the block of each load
	reg    [][]T // of each register, the part of the block that is interpreted
	buf    [][]T // the buffers of the registers that have one
	num    []T   // the value of registers that are numbers
	linked *linked
}

func (k *fused[T, A]) Run() error {
	parts := k.jobs.Run(k, k.work)
	for i := range k.sums {
		s := &k.sums[i]
		if s.mean == 0 {
			s.finish(parts, nil)
		}
	}
	for i := range k.sums { // plain sums are complete now
		if s := &k.sums[i]; s.mean > 0 {
			s.finish(parts, &k.sums[s.mean-1])
		}
	}
	return nil
}

// Part computes part w of n of the blocks.
func (k *fused[T, A]) Part(worker, w, n int) {
	lo, hi := threads.Part(k.order.count(), w, n)
	ln := &k.lanes[worker]
	for i := range k.sums {
		k.sums[i].reset(w, k.order, lo, hi)
	}
	k.begin(ln)
	if ln.linked != nil {
		ln.linked.clearSums()
	}
	for b := lo; b < hi; b++ {
		at, n := k.order.at(b)
		k.do(ln, w, at, n)
	}
	k.fold(ln, w)
}

// begin fills the registers that are the same in each block.
func (k *fused[T, A]) begin(ln *lane[T]) {
	for i := range k.loads {
		l := &k.loads[i]
		switch {
		case l.mode == constant:
			ln.num[l.reg] = l.value
			if l.array {
				array.Fill(ln.buf[l.reg], l.value)
			}
		case l.acc.Scalar() && l.mode == repeated:
			l.read(ln.num[l.reg:l.reg+1], l.mem, 0)
			if l.array {
				array.Fill(ln.buf[l.reg], ln.num[l.reg])
			}
		case l.mode == repeated:
			l.fill(ln.buf[l.reg], 0)
		}
	}
}

// Buffer is the memory, in bytes, that each thread needs; kernels that do not run at
// the same time may have the same memory.
func (k *fused[T, A]) Buffer() int { return k.buffers*k.pitch()*8 + k.sumBytes() }

// pitch is the distance of buffers, in elements: were it a power of 2, all
// would compete for the same few places of the first-level cache.
func (k *fused[T, A]) pitch() int { return (k.block+15)/16*16 + 80 }

// Attach gives thread w its memory.
func (k *fused[T, A]) Attach(w int, mem unsafe.Pointer) {
	all := array.Span[T](mem, k.buffers*k.pitch())
	for r, b := range k.buffer {
		if b >= 0 {
			k.lanes[w].buf[r] = all[b*k.pitch():][:k.block:k.block]
		}
	}
	if k.code != nil {
		k.lanes[w].linked = k.link(&k.lanes[w], mem, k.buffers*k.pitch()*8)
	}
}

func (l *load[T]) fill(dst []T, at int) {
	if l.plain {
		array.Expand(dst, array.Span[T](l.mem, l.extent()), l.acc, at)
		return
	}
	array.Runs(l.acc, at, len(dst), func(at, off, n, stride int) {
		if stride == 1 {
			l.read(dst[at:at+n], l.mem, off)
			return
		}
		l.read(dst[at:at+1], l.mem, off)
		array.Fill(dst[at:at+n], dst[at])
	})
}

// extent is the number of elements of the operand.
func (l *load[T]) extent() int {
	n := 1
	for i, d := range l.acc.Dims {
		n += (d - 1) * l.acc.Strides[i]
	}
	return n
}

// do computes the points at … at+n, a block.
func (k *fused[T, A]) do(ln *lane[T], w, at, n int) {
	k.bring(ln, at, n)
	done := k.runMachine(ln, w, at, n)
	if done < n {
		k.interpret(ln, at, done, n)
	}
	for i := range k.sums {
		s := &k.sums[i]
		from := 0
		if s.summing != byLoops {
			from = done
		}
		if from < n {
			s.block(w, at+from, k.view(ln, s.reg, at, n)[from:])
		}
	}
	for i := range k.stores {
		s := &k.stores[i]
		s.write(s.mem, at, k.view(ln, s.reg, at, n))
	}
}

// bring gets the operands of a block.
func (k *fused[T, A]) bring(ln *lane[T], at, n int) {
	for i := range k.loads {
		l := &k.loads[i]
		switch l.mode {
		case direct:
			ln.blk[l.reg] = array.Span[T](l.mem, at+n)[at:]
			continue
		case segment:
			off := l.acc.Offset(at)
			ln.blk[l.reg] = array.Span[T](l.mem, off+n)[off:]
			continue
		case spread:
			l.read(ln.num[l.reg:l.reg+1], l.mem, l.acc.Offset(at))
			if l.array {
				array.Fill(ln.buf[l.reg][:n], ln.num[l.reg])
			}
		case general:
			l.fill(ln.buf[l.reg][:n], at)
		}
		if b := ln.buf[l.reg]; b != nil {
			ln.blk[l.reg] = b[:n]
		}
	}
}

// view is register r after a block.
func (k *fused[T, A]) view(ln *lane[T], r, at, n int) []T {
	if r < len(k.loads) {
		return ln.blk[r]
	}
	if out := k.instrs[r-len(k.loads)].out; out != nil {
		return array.Span[T](out, at+n)[at:]
	}
	return ln.buf[r][:n]
}

// interpret computes the points from … n of the block at at, instruction by
// instruction.
func (k *fused[T, A]) interpret(ln *lane[T], at, from, n int) {
	for r, b := range ln.blk {
		if b != nil {
			ln.reg[r] = b[from:]
		}
	}
	for i := range k.instrs {
		c := &k.instrs[i]
		var d []T
		if c.out != nil {
			d = array.Span[T](c.out, at+n)[at+from:]
		} else {
			d = ln.buf[c.dst][from:n]
		}
		ln.reg[c.dst] = d
		switch {
		case c.fs != nil:
			c.fs(d, ln.reg[c.x], ln.num[c.y])
		case c.f2 != nil:
			c.f2(d, ln.reg[c.x], ln.reg[c.y])
		case c.f1 != nil:
			c.f1(d, ln.reg[c.x], c.a)
		default:
			c.f3(d, ln.reg[c.x], ln.reg[c.y], ln.reg[c.z])
		}
		if k.round != nil {
			k.round(d)
		}
	}
}

// newFused makes the kernel of a group; scratch holds its sums.
func newFused[T, A array.Number](jobs *threads.Jobs, f *plan.Fused, in, out []array.Place, tab vec.Table[T, A], scratch unsafe.Pointer) *fused[T, A] {
	k := &fused[T, A]{jobs: jobs, n: f.Dims.Len(), round: array.RounderOf[T](f.DType)}
	block, run := blockOf(f)
	k.block, k.order = block, orderOf(f, block, run)
	k.work = k.n * (len(f.Code) + len(f.Stores) + len(f.Sums))
	k.number = make([]bool, f.Registers())
	c := fusing[T, A]{fused: k, f: f, tab: tab}
	c.loads(in)
	c.code()
	c.sums(out[len(f.Stores):], scratch)
	c.results(in, out)
	c.machine()
	c.lanes(jobs.Threads)
	return k
}
