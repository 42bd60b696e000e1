package pointwise

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/machine"
)

// linked is a group's machine code with the addresses of one thread.
type linked struct {
	program  *machine.Program
	segments []use       // operands that lie elsewhere for each block
	pieces   []use       // sums of which each block has a piece of its own
	acc      [][]float64 // by sum: what the machine adds to, nil if that is the sum itself or another's business
}

// use is an instruction, and the load or sum that it uses.
type use struct{ instr, of int }

// link gives the code its addresses for one thread, whose sums lie in mem from
// byte at on.
func (k *fused[T, A]) link(ln *lane[T], mem unsafe.Pointer, at int) *linked {
	l := &linked{program: machine.Link(k.code), acc: make([][]float64, len(k.sums))}
	for i, c := range k.code {
		switch {
		case c.Reg >= 0:
			k.linkOperand(l, ln, i, c.Reg)
		case c.Sum >= 0:
			at = k.linkSum(l, i, c.Sum, mem, at)
		}
	}
	return l
}

// linkOperand gives instruction i the address of register r.
func (k *fused[T, A]) linkOperand(l *linked, ln *lane[T], i, r int) {
	buffer := func(c machine.Counter) {
		l.program.Operand(i, unsafe.Pointer(unsafe.SliceData(ln.buf[r])), c)
	}
	if r >= len(k.loads) {
		switch c := &k.instrs[r-len(k.loads)]; {
		case c.out != nil:
			l.program.Operand(i, c.out, machine.InArray)
		case k.keep[r]:
			buffer(machine.InBlock)
		default:
			buffer(machine.Still)
		}
		return
	}
	switch d := &k.loads[r]; {
	case k.number[r]:
		l.program.Operand(i, unsafe.Pointer(&ln.num[r]), machine.Still)
	case d.mode == direct:
		l.program.Operand(i, d.mem, machine.InArray)
	case d.mode == segment:
		l.program.Operand(i, nil, machine.InBlock)
		l.segments = append(l.segments, use{i, r})
	default:
		buffer(machine.InBlock)
	}
}

// linkSum gives instruction i the place of sum number n, in mem from byte at on,
// and returns where the next may begin.
func (k *fused[T, A]) linkSum(l *linked, i, n int, mem unsafe.Pointer, at int) int {
	s := &k.sums[n]
	counter := machine.InSums
	switch s.summing {
	case toOne:
		counter = machine.Still
	case toPieces:
		l.program.Operand(i, nil, counter)
		l.pieces = append(l.pieces, use{i, n})
		return at
	}
	size := s.lanes(k.block)
	mem = unsafe.Add(mem, at)
	l.program.Operand(i, mem, counter)
	l.acc[n] = array.Span[float64](mem, size)
	return at + size*8
}

// runMachine runs the machine on the first points of the block at at, in part w,
// and returns how many it did.
func (k *fused[T, A]) runMachine(ln *lane[T], w, at, n int) int {
	strips := n / machine.Width
	if strips == 0 || ln.linked == nil {
		return 0
	}
	l := ln.linked
	for _, u := range l.segments {
		l.program.Move(u.instr, unsafe.Pointer(unsafe.SliceData(ln.blk[u.of])))
	}
	for _, u := range l.pieces {
		s := &k.sums[u.of]
		l.program.Move(u.instr, unsafe.Pointer(&s.part[w][s.acc.Offset(at)]))
	}
	l.program.Run(at, strips)
	return strips * machine.Width
}
