package pointwise

import (
	"reflect"
	"slices"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/machine"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// fusing is a fused kernel under construction.
type fusing[T, A array.Number] struct {
	*fused[T, A]
	f   *plan.Fused
	tab vec.Table[T, A]
}

func (c *fusing[T, A]) loads(in []array.Place) {
	for i, a := range c.f.Loads {
		l := load[T]{mem: in[i].Mem, acc: a, read: array.ReaderOf[T](in[i].DType), reg: i, plain: in[i].DType == c.tab.DType, mode: general}
		switch {
		case a.Full() && l.plain:
			l.mode = direct
		case a.Scalar():
			l.mode = repeated
			c.number[i] = true
		case c.order.repeats(a):
			l.mode = repeated
		case c.order.inRuns(a, 0):
			l.mode = spread
			c.number[i] = true
		case c.order.inRuns(a, 1) && l.plain:
			l.mode = segment
		}
		c.fused.loads = append(c.fused.loads, l)
	}
	for i, v := range c.f.Consts {
		r := len(c.f.Loads) + i
		c.number[r] = true
		value := []T{array.Rounded[T](v)}
		if c.round != nil { // to the group's type, which is narrower than T
			c.round(value)
		}
		c.fused.loads = append(c.fused.loads, load[T]{mode: constant, reg: r, value: value[0]})
	}
}

func (c *fusing[T, A]) code() {
	first := len(c.f.Loads) + len(c.f.Consts)
	for i, in := range c.f.Code {
		k := instr[T]{dst: first + i, x: in.X, y: in.Y, z: in.Z}
		switch op := in.Op.(type) {
		case graph.Unary:
			k.f1, k.a = c.tab.Unary(op.Fn), T(op.A())
			c.array(k.x)
		case graph.Binary:
			c.binary(&k, op.Fn)
		case graph.Select:
			k.f3 = c.tab.Select
			c.array(k.x, k.y, k.z)
		}
		c.fused.instrs = append(c.fused.instrs, k)
	}
}

// binary picks the loop for arrays or an array and a number.
func (c *fusing[T, A]) binary(k *instr[T], fn graph.BinaryFn) {
	p := c.tab.Binary(fn)
	switch {
	case c.number[k.y] && !c.number[k.x]:
		k.fs = p.VS
		c.array(k.x)
	case c.number[k.x] && !c.number[k.y]:
		k.fs, k.x, k.y = p.SV, k.y, k.x
		c.array(k.x)
	default:
		k.f2 = p.VV
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
func (c *fusing[T, A]) results(in, out []array.Place) {
	first := len(c.f.Loads) + len(c.f.Consts)
	c.keep = make([]bool, c.f.Registers())
	for _, s := range c.fused.sums {
		c.array(s.reg)
		c.keep[s.reg] = c.keep[s.reg] || s.summing == byLoops
	}
	for _, r := range c.f.Stores {
		c.keep[r] = true
	}
	lastRead := c.lastRead(in)
	for i, r := range c.f.Stores {
		c.array(r)
		if r >= first && c.f.DType == c.tab.DType && c.fused.instrs[r-first].out == nil && lastRead[out[i].Mem] <= r-first {
			c.fused.instrs[r-first].out = out[i].Mem
			continue
		}
		c.stores = append(c.stores, store[T]{reg: r, mem: out[i].Mem, write: array.WriterOf[T](c.f.DType)})
	}
}

// lastRead is, by the place of an operand, the last instruction that reads it: the one
// behind all if what is stored or summed does.
func (c *fusing[T, A]) lastRead(in []array.Place) map[unsafe.Pointer]int {
	last := make(map[unsafe.Pointer]int, len(in))
	read := func(i int, regs ...int) {
		for _, r := range regs {
			if r < len(in) {
				last[in[r].Mem] = i
			}
		}
	}
	for i, k := range c.f.Code {
		switch k.Op.(type) {
		case graph.Unary:
			read(i, k.X)
		case graph.Select:
			read(i, k.X, k.Y, k.Z)
		default:
			read(i, k.X, k.Y)
		}
	}
	for _, s := range c.f.Sums {
		read(len(c.f.Code), s.Reg)
	}
	read(len(c.f.Code), c.f.Stores...)
	return last
}

// sums makes the group's reductions, with their results' places. A sum of
// squares around the mean takes the mean from the plain sum of the same
// elements, which is added if there is none.
func (c *fusing[T, A]) sums(out []array.Place, scratch unsafe.Pointer) {
	at := 0
	add := func(r plan.Reduction, out unsafe.Pointer) {
		size := resultLen(r.Access)
		mem := scratch
		if size > 0 {
			mem = unsafe.Add(scratch, at)
		}
		s := newSum(r, c.tab, out, c.f.DType, size, c.jobs.Parts, mem)
		s.summing = summingOf(r, c.order)
		s.n = float64(c.n) / float64(max(1, size))
		c.fused.sums = append(c.fused.sums, s)
		at += partialBytes(size, c.jobs.Parts)
	}
	for i, r := range c.f.Sums {
		add(r, out[i].Mem)
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

// machine makes the code for the machine, if the group is one for it.
func (c *fusing[T, A]) machine() {
	if machine.Available() && c.f.DType == graph.F32 && c.block >= machine.Width {
		var sums []machine.Summing
		for i, s := range c.fused.sums {
			if s.summing != byLoops {
				sums = append(sums, machine.Summing{Reg: s.reg, Sum: i, Squares: s.mean > 0})
			}
		}
		c.fused.code = machine.Assemble(c.f, c.number, c.keep, sums)
		c.prefetch()
	}
}

// prefetch asks for the next row of a band while one is worked on: the processor
// foresees only what lies in a line. Of several long arrays side by side it foresees
// less than it could, so the next strip is asked for, too.
func (c *fusing[T, A]) prefetch() {
	if c.fused.code == nil || c.order.rows == 0 && c.n < long {
		return
	}
	ahead := machine.Width * 4
	if c.order.rows > 0 {
		ahead = c.order.cols * 4
	}
	for i, l := range c.fused.loads {
		if l.mode == direct {
			c.fused.code = slices.Insert(c.fused.code, 0, machine.Prefetch(i, ahead))
		}
	}
}

// long is the number of points from which on a few arrays are more than a first-level
// cache holds, many times over.
const long = 1 << 15

// lanes gives each thread its registers; Attach gives them memory.
func (c *fusing[T, A]) lanes(n int) {
	c.buffer, c.buffers = c.assignBuffers()
	for range n {
		c.fused.lanes = append(c.fused.lanes, lane[T]{
			blk: make([][]T, len(c.fused.loads)), reg: make([][]T, c.f.Registers()), buf: make([][]T, c.f.Registers()), num: make([]T, c.f.Registers()),
		})
	}
}

// assignBuffers numbers the buffer of each register, -1 for those that need none:
// registers that live at different times have the same.
func (c *fusing[T, A]) assignBuffers() (buffer []int, buffers int) {
	buffer = make([]int, c.f.Registers())
	last := c.lastUses()
	for r := range buffer {
		buffer[r] = -1
	}
	for _, l := range c.fused.loads {
		if l.mode == general || l.array && l.mode != direct && l.mode != segment || l.mode == repeated && !l.acc.Scalar() {
			buffer[l.reg] = buffers // filled before the block or run: its own
			buffers++
		}
	}
	var free []int
	first := len(c.fused.loads)
	for i, k := range c.fused.instrs {
		for _, r := range [...]int{k.x, k.y, k.z} { // a result may replace an operand that dies
			if r >= first && last[r] == i && buffer[r] >= 0 {
				free = append(free, buffer[r])
				last[r] = -1
			}
		}
		if k.out != nil {
			continue
		}
		if len(free) == 0 || c.keep[k.dst] { // the machine uses the start of others again for each strip
			free = append(free, buffers)
			buffers++
		}
		buffer[k.dst] = free[len(free)-1]
		free = free[:len(free)-1]
	}
	return buffer, buffers
}

// lastUses is the last instruction that reads each register, or the number of
// instructions if a sum or store does.
func (c *fusing[T, A]) lastUses() []int {
	last := make([]int, c.f.Registers())
	for i, k := range c.fused.instrs {
		last[k.x] = i
		if k.f2 != nil || k.fs != nil || k.f3 != nil {
			last[k.y] = i
		}
		if k.f3 != nil {
			last[k.z] = i
		}
	}
	for _, s := range c.f.Sums {
		last[s.Reg] = len(c.fused.instrs)
	}
	for _, r := range c.f.Stores {
		last[r] = len(c.fused.instrs)
	}
	return last
}
