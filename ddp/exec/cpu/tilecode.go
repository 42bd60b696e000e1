package cpu

import (
	"slices"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// tiling is a program for the machine under construction.
type tiling struct {
	f      *plan.Fused
	number []bool // by register: one number
	sums   []tileSumming
	uses   []int  // by register
	slope  []bool // by instruction: left out, for the next one does it too
	ops    []tileInstr
	acc    int // the register that the accumulator holds, -1 if none
}

// newTileCode is the program of a group, nil if there are instructions that
// the machine does not have. keep says which registers must be in memory, sums
// which of the group's sums the machine does.
func newTileCode(f *plan.Fused, number, keep []bool, sums []tileSumming) []tileInstr {
	t := &tiling{f: f, number: number, sums: sums, uses: make([]int, f.Registers()), slope: make([]bool, len(f.Code)), acc: -1}
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
			t.ops = append(t.ops, tileInstr{code: tileStore, reg: t.acc})
		}
	}
	return append(t.ops, tileInstr{code: tileNext, reg: -1})
}

// tileSumming is a sum that the machine does, of a register.
type tileSumming struct {
	reg, sum int
	squares  bool
}

func (t *tiling) summed(r int) bool {
	return slices.ContainsFunc(t.sums, func(s tileSumming) bool { return s.reg == r })
}

// sum adds the accumulator, register r, to its sums.
func (t *tiling) sum(r int) {
	for _, s := range t.sums {
		if s.reg != r {
			continue
		}
		fn := tileSum
		if s.squares {
			fn = tileSquares
		}
		t.ops = append(t.ops, tileInstr{code: fn, reg: -1, sum: s.sum + 1})
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
func (t *tiling) staysInside(i int) bool {
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
	_, turned := tileBinary(b.Fn)
	return next.X == r || next.Y == r && (turned != 0 || t.number[next.X])
}

// isSlope says whether instruction i is the derivative of a rectifier at an
// array in memory, which only the next instruction reads: a product.
func (t *tiling) isSlope(i int) bool {
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
func (t *tiling) multiplySlope(i int) {
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
	t.ops = append(t.ops, tileInstr{code: tileSlope, reg: s.X, num: num})
}

// instr adds instruction c, and says whether the machine has it.
func (t *tiling) instr(c plan.Instr) bool {
	switch op := c.Op.(type) {
	case graph.Unary:
		fn, num := tileUnary(op)
		if fn == 0 {
			return false
		}
		t.load(c.X)
		t.ops = append(t.ops, tileInstr{code: fn, reg: -1, num: num, own: true})
		return true
	case graph.Binary:
		fn, turned := tileBinary(op.Fn)
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
func (t *tiling) load(r int) {
	if t.acc != r {
		t.operate(tileLoad, r)
	}
}

func (t *tiling) operate(fn tileFn, r int) {
	if t.number[r] {
		fn = numbered(fn)
	}
	t.ops = append(t.ops, tileInstr{code: fn, reg: r})
}
