package machine

import (
	"slices"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// Instr is an instruction whose operand has no address yet.
type Instr struct {
	op    opcode
	num   float32
	own   bool // the operand is num
	Reg   int  // the register that is its operand, -1 if none
	Sum   int  // the sum that it adds to, -1 if none
	Ahead int  // of a prefetch: bytes from the operand
}

// Summing is a sum that the machine does, of a register.
type Summing struct {
	Reg, Sum int
	Squares  bool
}

// Prefetch asks for what lies some bytes ahead of a strip of register r.
func Prefetch(r, ahead int) Instr { return Instr{op: opPrefetch, Reg: r, Sum: -1, Ahead: ahead} }

// assembly is code under construction.
type assembly struct {
	f      *plan.Fused
	number []bool // by register: one number
	sums   []Summing
	uses   []int  // by register
	slope  []bool // by instruction: left out, for the next one does it too
	code   []Instr
	acc    int // the register that the accumulator holds, -1 if none
}

// Assemble makes the code of a group, nil if there are instructions that the
// machine does not have. Of the registers, number says which are one number for
// all points of a block, and keep which must be in memory; sums are those of the
// group's sums that the machine does.
func Assemble(f *plan.Fused, number, keep []bool, sums []Summing) []Instr {
	t := &assembly{f: f, number: number, sums: sums, uses: make([]int, f.Registers()), slope: make([]bool, len(f.Code)), acc: -1}
	for _, c := range f.Code {
		for _, r := range operands(c) {
			t.uses[r]++
		}
	}
	first := len(f.Loads) + len(f.Consts)
	for i := range f.Code {
		t.slope[i] = !keep[first+i] && !t.summed(first+i) && t.isSlope(i)
	}
	for r := range first {
		if t.summed(r) {
			t.load(r)
			t.acc = r
			t.sum(r)
		}
	}
	for i, c := range f.Code {
		if t.slope[i] {
			continue
		}
		if i > 0 && t.slope[i-1] {
			t.multiplySlope(i)
		} else if !t.instr(c) {
			return nil
		}
		t.acc = first + i
		t.sum(t.acc)
		if keep[t.acc] || !t.staysInside(i) {
			t.code = append(t.code, Instr{op: opStore, Reg: t.acc, Sum: -1})
		}
	}
	return append(t.code, Instr{op: opNext, Reg: -1, Sum: -1})
}

func (t *assembly) summed(r int) bool {
	return slices.ContainsFunc(t.sums, func(s Summing) bool { return s.Reg == r })
}

// sum adds the accumulator, register r, to its sums.
func (t *assembly) sum(r int) {
	for _, s := range t.sums {
		if s.Reg != r {
			continue
		}
		fn := opSum
		if s.Squares {
			fn = opSumSquares
		}
		t.code = append(t.code, Instr{op: fn, Reg: -1, Sum: s.Sum})
	}
}

// operands are the registers that an instruction reads.
func operands(c plan.Instr) []int {
	switch c.Op.(type) {
	case graph.Binary:
		return []int{c.X, c.Y}
	case graph.Select:
		return []int{c.X, c.Y, c.Z}
	}
	return []int{c.X}
}

// staysInside says whether the result of instruction i is needed by the next
// one only, which takes it from the accumulator.
func (t *assembly) staysInside(i int) bool {
	r := len(t.f.Loads) + len(t.f.Consts) + i
	if i++; i < len(t.f.Code) && t.slope[i] {
		i++
	}
	if t.uses[r] != 1 || i == len(t.f.Code) {
		return t.uses[r] == 0
	}
	next := t.f.Code[i]
	b, ok := next.Op.(graph.Binary)
	if !ok {
		return next.X == r
	}
	_, turned := binary(b.Fn)
	return next.X == r || next.Y == r && (turned != 0 || t.number[next.X])
}

// isSlope says whether instruction i is the derivative of a rectifier at an
// array in memory, which only the next instruction reads: a product.
func (t *assembly) isSlope(i int) bool {
	u, ok := t.f.Code[i].Op.(graph.Unary)
	if !ok || u.Fn != graph.Step && u.Fn != graph.LeakyStep || i+1 == len(t.f.Code) {
		return false
	}
	r := len(t.f.Loads) + len(t.f.Consts) + i
	x, next := t.f.Code[i].X, t.f.Code[i+1]
	return x < len(t.f.Loads) && !t.number[x] && t.uses[r] == 1 && next.Op == graph.Op(graph.Binary{Fn: graph.Mul}) && next.X != next.Y &&
		(next.X == r || next.Y == r)
}

// multiplySlope adds the product that is instruction i.
func (t *assembly) multiplySlope(i int) {
	c, s := t.f.Code[i], t.f.Code[i-1]
	other := c.X
	if other == len(t.f.Loads)+len(t.f.Consts)+i-1 {
		other = c.Y
	}
	t.load(other)
	u := s.Op.(graph.Unary)
	num := float32(u.A())
	if u.Fn == graph.Step {
		num = 0
	}
	t.code = append(t.code, Instr{op: opSlope, Reg: s.X, Sum: -1, num: num})
}

// instr adds instruction c, and says whether the machine has it.
func (t *assembly) instr(c plan.Instr) bool {
	switch op := c.Op.(type) {
	case graph.Unary:
		fn, num := unary(op)
		if fn == 0 {
			return false
		}
		t.load(c.X)
		t.code = append(t.code, Instr{op: fn, Reg: -1, Sum: -1, num: num, own: true})
		return true
	case graph.Binary:
		fn, turned := binary(op.Fn)
		if fn == 0 {
			return false
		}
		if turned == 0 && t.number[c.X] && !t.number[c.Y] {
			c.X, c.Y = c.Y, c.X // as the interpreter's loops do
		}
		if t.acc == c.Y && t.acc != c.X && turned != 0 {
			t.operate(turned, c.X)
			return true
		}
		t.load(c.X)
		t.operate(fn, c.Y)
		return true
	}
	return false
}

// load brings register r into the accumulator.
func (t *assembly) load(r int) {
	if t.acc != r {
		t.operate(opLoad, r)
	}
}

func (t *assembly) operate(fn opcode, r int) {
	if t.number[r] {
		fn++
	}
	t.code = append(t.code, Instr{op: fn, Reg: r, Sum: -1})
}
