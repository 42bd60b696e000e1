package cpu

import (
	"reflect"
	"slices"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// fusing is a fused kernel under construction.
type fusing[T, A array.Number] struct {
	*fused[T, A]
	f   *plan.Fused
	tab table[T, A]
}

func (c *fusing[T, A]) loads(in []unsafe.Pointer, dts []graph.DType) {
	for i, a := range c.f.Loads {
		l := load[T]{mem: in[i], acc: a, read: array.ReaderOf[T](dts[i]), reg: i, plain: dts[i] == c.tab.plain, mode: general}
		switch {
		case a.Full() && l.plain:
			l.mode = direct
		case a.Scalar():
			l.mode = repeated
			c.number[i] = true
		case array.Period(a) > 0 && c.block%array.Period(a) == 0:
			l.mode = repeated
		case array.InRuns(a, c.block, 0):
			l.mode = spread
			c.number[i] = true
		case array.InRuns(a, c.block, 1) && l.plain:
			l.mode = segment
		}
		c.fused.loads = append(c.fused.loads, l)
	}
	for i, v := range c.f.Consts {
		r := len(c.f.Loads) + i
		c.number[r] = true
		c.fused.loads = append(c.fused.loads, load[T]{mode: constant, reg: r, value: array.Rounded[T](v)})
	}
}

func (c *fusing[T, A]) code() {
	first := len(c.f.Loads) + len(c.f.Consts)
	for i, in := range c.f.Code {
		k := instr[T]{dst: first + i, x: in.X, y: in.Y, z: in.Z}
		switch op := in.Op.(type) {
		case graph.Unary:
			k.f1, k.a = c.tab.unary(op.Fn), T(op.A())
			c.array(k.x)
		case graph.Binary:
			c.binary(&k, op.Fn)
		case graph.Select:
			k.f3 = c.tab.choose
			c.array(k.x, k.y, k.z)
		}
		c.fused.code = append(c.fused.code, k)
	}
}

// binary picks the loop for arrays or an array and a number.
func (c *fusing[T, A]) binary(k *instr[T], fn graph.BinaryFn) {
	p := c.tab.binary(fn)
	switch {
	case c.number[k.y] && !c.number[k.x]:
		k.fs = p.vs
		c.array(k.x)
	case c.number[k.x] && !c.number[k.y]:
		k.fs, k.x, k.y = p.sv, k.y, k.x
		c.array(k.x)
	default:
		k.f2 = p.vv
		c.array(k.x, k.y)
	}
}

// array says that the registers are needed as blocks.
func (c *fusing[T, A]) array(regs ...int) {
	for _, r := range regs {
		if r < len(c.fused.loads) {
			c.fused.loads[r].array = true
		}
	}
}

// results decides for each stored register whether it is computed where it
// belongs, or copied there at the end of the block. It is copied if the place
// is that of an operand that is read later in the block.
func (c *fusing[T, A]) results(in, out []unsafe.Pointer) {
	first := len(c.f.Loads) + len(c.f.Consts)
	c.keep = make([]bool, c.f.Registers())
	for _, s := range c.fused.sums {
		c.array(s.reg)
		c.keep[s.reg] = c.keep[s.reg] || s.tiles == notInTiles
	}
	for _, r := range c.f.Stores {
		c.keep[r] = true
	}
	for i, r := range c.f.Stores {
		c.array(r)
		if r >= first && c.f.DType == c.tab.plain && c.fused.code[r-first].out == nil && !c.readAfter(in, out[i], r-first) {
			c.fused.code[r-first].out = out[i]
			continue
		}
		c.stores = append(c.stores, store[T]{reg: r, mem: out[i], write: array.WriterOf[T](c.f.DType)})
	}
}

// readAfter says whether an operand at place p is read after instruction i.
func (c *fusing[T, A]) readAfter(in []unsafe.Pointer, p unsafe.Pointer, i int) bool {
	reads := func(r int) bool { return r < len(in) && in[r] == p }
	for _, k := range c.f.Code[i+1:] {
		sel := false
		if _, ok := k.Op.(graph.Select); ok {
			sel = reads(k.Z)
		}
		_, unary := k.Op.(graph.Unary)
		if reads(k.X) || !unary && reads(k.Y) || sel {
			return true
		}
	}
	for _, s := range c.f.Sums {
		if reads(s.Reg) {
			return true
		}
	}
	for _, r := range c.f.Stores {
		if reads(r) {
			return true
		}
	}
	return false
}

// sums makes the group's reductions, with their results' places. A sum of
// squares around the mean takes the mean from the plain sum of the same
// elements, which is added if there is none.
func (c *fusing[T, A]) sums(out []unsafe.Pointer, scratch unsafe.Pointer) {
	add := func(r plan.Reduction, out unsafe.Pointer) {
		size := resultLen(r.Access)
		s := newSum(r, c.tab.sums, out, c.f.DType, size, c.jobs.Parts, scratch)
		s.tiles = tileSumOf(r, c.block)
		s.n = float64(c.n) / float64(max(1, size))
		c.fused.sums = append(c.fused.sums, s)
		scratch = unsafe.Add(scratch, sumBytes(size, c.jobs.Parts))
	}
	for i, r := range c.f.Sums {
		add(r, out[i])
	}
	for i, r := range c.f.Sums {
		if !r.Centred {
			continue
		}
		r.Centred = false
		k := slices.IndexFunc(c.f.Sums, func(o plan.Reduction) bool { return reflect.DeepEqual(o, r) })
		if k < 0 {
			k = len(c.fused.sums)
			add(r, nil)
		}
		c.fused.sums[i].mean = k + 1
	}
}

// tile makes the program for the tile machine, if the group is one for it.
func (c *fusing[T, A]) tile() {
	if hasTiles && c.tab.plain == graph.F32 && c.f.DType == graph.F32 && c.block >= tileLen {
		var sums []tileSumming
		for i, s := range c.fused.sums {
			if s.tiles != notInTiles {
				sums = append(sums, tileSumming{s.reg, i, s.mean > 0})
			}
		}
		c.tiles = newTileCode(c.f, c.number, c.keep, sums)
		c.prefetch()
	}
}

// prefetch asks for the next row of a strip while one is worked on: the processor
// foresees only what lies in a line.
func (c *fusing[T, A]) prefetch() {
	if c.tiles == nil || c.order.strip == 0 {
		return
	}
	for i, l := range c.fused.loads {
		if l.mode == direct {
			c.tiles = append([]tileInstr{{code: tilePrefetch, reg: i}}, c.tiles...)
		}
	}
}

// lanes gives each thread its registers; attach gives them memory.
func (c *fusing[T, A]) lanes(n int) {
	c.shared, c.buffers = c.share()
	for range n {
		c.fused.lanes = append(c.fused.lanes, lane[T]{
			blk: make([][]T, len(c.fused.loads)), reg: make([][]T, c.f.Registers()), buf: make([][]T, c.f.Registers()), num: make([]T, c.f.Registers()),
		})
	}
}

// share numbers the buffer of each register, -1 for those that need none:
// registers that live at different times share one.
func (c *fusing[T, A]) share() (share []int, buffers int) {
	share = make([]int, c.f.Registers())
	last := c.lastUses()
	for r := range share {
		share[r] = -1
	}
	for _, l := range c.fused.loads {
		if l.mode == general || l.array && l.mode != direct && l.mode != segment || l.mode == repeated && !l.acc.Scalar() {
			share[l.reg] = buffers // filled before the block or run: its own
			buffers++
		}
	}
	var free []int
	first := len(c.fused.loads)
	for i, k := range c.fused.code {
		for _, r := range [...]int{k.x, k.y, k.z} { // a result may replace an operand that dies
			if r >= first && last[r] == i && share[r] >= 0 {
				free = append(free, share[r])
				last[r] = -1
			}
		}
		if k.out != nil {
			continue
		}
		if len(free) == 0 || c.keep[k.dst] { // the tile machine uses the start of others again for each tile
			free = append(free, buffers)
			buffers++
		}
		share[k.dst] = free[len(free)-1]
		free = free[:len(free)-1]
	}
	return share, buffers
}

// lastUses is the last instruction that reads each register, or the number of
// instructions if a sum or store does.
func (c *fusing[T, A]) lastUses() []int {
	last := make([]int, c.f.Registers())
	for i, k := range c.fused.code {
		last[k.x] = i
		if k.f2 != nil || k.fs != nil || k.f3 != nil {
			last[k.y] = i
		}
		if k.f3 != nil {
			last[k.z] = i
		}
	}
	for _, s := range c.f.Sums {
		last[s.Reg] = len(c.fused.code)
	}
	for _, r := range c.f.Stores {
		last[r] = len(c.fused.code)
	}
	return last
}
