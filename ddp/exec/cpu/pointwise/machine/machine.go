package machine

import "unsafe"

// Width is the number of points of a strip.
const Width = 128

// set is the machine in one instruction set.
type set struct {
	name     string
	handlers *[numOpcodes]uintptr // the addresses of the instructions' code
	run      func(code *linked, counters *[4]uintptr, strips int)
}

// best is the set of this processor, nil if it has none.
var best = func() *set {
	if s := sets(); len(s) > 0 {
		return &s[0]
	}
	return nil
}()

// Available says whether the processor has the machine's instructions.
func Available() bool { return best != nil }

// Counter says what is added to an operand's address, in bytes.
type Counter int

const (
	Still   Counter = iota // nothing
	InBlock                // how far the strip is in its block
	InArray                // how far it is in the arrays
	InSums                 // as InBlock, for sums in float64
)

// Program is code with the addresses of its operands.
type Program struct {
	set      *set
	code     []linked
	counters [4]uintptr // by Counter: numbers of bytes, no addresses
}

// linked is an instruction with the address of its operand, as the assembly
// reads it (go_asm.h).
type linked struct {
	handler uintptr // of code, which never moves
	operand unsafe.Pointer
	counter Counter
	num     float32
	ahead   uint32 // of a prefetch: bytes from the operand
}

// Link makes a program whose operands are still to be given.
func Link(code []Instr) *Program { return best.link(code) }

func (s *set) link(code []Instr) *Program {
	p := &Program{set: s, code: make([]linked, len(code))}
	for i, c := range code {
		l := &p.code[i]
		l.handler, l.num, l.ahead = s.handlers[c.op], c.num, uint32(c.Ahead)
		if c.own {
			l.operand = unsafe.Pointer(&l.num)
		}
	}
	return p
}

// Operand says where the operand of instruction i lies.
func (p *Program) Operand(i int, at unsafe.Pointer, c Counter) {
	p.code[i].operand, p.code[i].counter = at, c
}

// Move puts the operand of instruction i elsewhere.
func (p *Program) Move(i int, at unsafe.Pointer) { p.code[i].operand = at }

// Run does some strips, which are more than 0, of a block that starts so many
// elements into the arrays.
func (p *Program) Run(at, strips int) {
	p.counters = [4]uintptr{InArray: uintptr(at) * 4}
	p.set.run(&p.code[0], &p.counters, strips)
}
