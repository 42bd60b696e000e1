package kernel

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

//go:embed batch.h
var batchHeader string

// Batch is one launch of several chains of fused steps (plan.Launch), each done by a
// block: for steps that are so small that the launch is what they cost. Its kernel,
// one text for all batches, interprets a program that lies in the device's memory;
// instructions are the same C as in a step's own kernel, but sums are added up in
// another order. So whether a step is done in a batch, alone or not, should depend on
// nothing but the step where bits matter.
type Batch struct {
	Launch
	p        *plan.Plan
	program  []byte
	pointers []pointer
}

// pointer is an address in the program.
type pointer struct{ at, value int }

// batchSlots is the numbers that a thread has at hand.
const batchSlots = 16

// batchPart is the points that a block does of a step that shares its chain with no
// other and has no reductions.
const batchPart = 2 * Block

// Batches says whether step i can be in a batch: it is fused, and its instructions need
// few numbers at a time.
func Batches(p *plan.Plan, i int) bool {
	f, ok := p.Steps[i].Op.(*plan.Fused)
	return ok && f.Dims.Len() <= maxNarrow && assemble(f).slots <= batchSlots
}

// ForChains is the launch of chains, the steps of each in order; every step must be one
// that Batches.
func ForChains(p *plan.Plan, chains [][]int) (*Batch, error) {
	b := &batching{Batch: Batch{p: p}}
	var where [][2]int // by chain: where its blocks and steps begin
	for _, c := range chains {
		parts := 1
		if f, ok := p.Steps[c[0]].Op.(*plan.Fused); ok && len(c) == 1 && len(f.Sums) == 0 {
			parts = max(1, ceil(f.Dims.Len(), batchPart))
		}
		where = append(where, [2]int{b.space(parts * 24), parts})
	}
	grid := len(b.program) / 24
	for k, c := range chains {
		steps := b.space(48 * len(c))
		for j, i := range c {
			if !Batches(p, i) {
				return nil, fmt.Errorf("step %d, %v, is none for a batch", i, p.Steps[i].Op)
			}
			b.step(steps+48*j, i)
		}
		for part := range where[k][1] {
			at := where[k][0] + 24*part
			b.int64(at, steps)
			b.int32(at+8, len(c), part, where[k][1])
		}
	}
	var err error
	b.Launch, err = batchKernel(grid)
	return &b.Batch, err
}

// Program is the memory that the kernel interprets: it is put on the device once, at a
// multiple of 16 bytes. value is as Memory.Value.
func (b *Batch) Program(value func(v int) uint64) []byte {
	program := slices.Clone(b.program)
	for _, p := range b.pointers {
		binary.LittleEndian.PutUint64(program[p.at:], value(p.value))
	}
	return program
}

// Args is the kernel's argument, where the program lies at that address.
func (b *Batch) Args(program uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, program)
}

// batching is a batch under construction.
type batching struct{ Batch }

// space adds zeros to the program and returns where they are.
func (b *batching) space(bytes int) int {
	at := len(b.program)
	b.program = append(b.program, make([]byte, bytes)...)
	return at
}

func (b *batching) int64(at int, v ...int) {
	for i, x := range v {
		binary.LittleEndian.PutUint64(b.program[at+8*i:], uint64(x))
	}
}

func (b *batching) int32(at int, v ...int) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(b.program[at+4*i:], uint32(x))
	}
}

func (b *batching) double(at int, v float64) {
	binary.LittleEndian.PutUint64(b.program[at:], math.Float64bits(v))
}

func (b *batching) pointer(at, value int) { b.pointers = append(b.pointers, pointer{at, value}) }

// step writes a struct bstep and what it points to.
func (b *batching) step(at, i int) {
	s := &b.p.Steps[i]
	f := s.Op.(*plan.Fused)
	a := assemble(f)
	code, operands, sums := b.space(24*len(a.code)), b.space(64*(len(f.Loads)+len(f.Stores))), b.space(152*len(f.Sums))
	b.int64(at, f.Dims.Len(), code, operands, sums)
	kind := slices.Index([]string{"float", "double", "i64"}, register(f.DType))
	round := max(0, slices.Index([]graph.DType{0, graph.BF16, graph.I32, graph.U8}, f.DType))
	b.int32(at+32, kind, round, len(a.code), len(f.Sums))
	for k, c := range a.code {
		b.int32(code+24*k, c.op)
		copy(b.program[code+24*k+4:], []byte{c.dst, c.x, c.y, c.z})
		b.double(code+24*k+8, c.a)
		b.int64(code+24*k+16, c.at)
	}
	for k, v := range append(slices.Clone(s.In), s.Out[:len(f.Stores)]...) {
		o := operands + 64*k
		b.pointer(o, v)
		var access plan.Access
		if k < len(f.Loads) {
			access = f.Loads[k]
		}
		b.int32(o+8, slices.Index(finishTypes, b.p.Values[v].DType), len(access.Dims))
		b.int32(o+16, access.Dims...)
		b.int32(o+40, access.Strides...)
	}
	for k, r := range f.Sums {
		b.sum(sums+152*k, f, r, a.slot[r.Reg], s.Out[len(f.Stores)+k])
	}
}

// sum writes a struct bsum: a reduction of the points to value v.
func (b *batching) sum(at int, f *plan.Fused, r plan.Reduction, slot uint8, v int) {
	var kept, over axes
	step := 1
	for i := len(r.Dims) - 1; i >= 0; i-- {
		a := &over
		if r.Strides[i] != 0 {
			a = &kept
		}
		a.dims, a.strides = append([]int{r.Dims[i]}, a.dims...), append([]int{step}, a.strides...)
		step *= r.Dims[i]
	}
	results, terms := kept.len(), over.len()
	if f.Dims.Len() == 0 {
		results, terms, kept, over = b.p.Values[v].Dims.Len(), 0, axes{}, axes{}
	}
	threads := 1
	for threads < Block && 2*threads*results <= Block {
		threads *= 2
	}
	how := int(accumulators(r)[0].how)
	if r.Centred {
		how = int(squared)
	}
	b.pointer(at, v)
	b.int64(at+8, results, terms)
	b.double(at+24, float64(terms))
	b.int32(at+32, slices.Index(finishTypes, b.p.Values[v].DType), int(slot), how, threads, len(kept.dims), len(over.dims))
	b.int32(at+56, kept.dims...)
	b.int32(at+80, kept.strides...)
	b.int32(at+104, over.dims...)
	b.int32(at+128, over.strides...)
}

// assembly is a group as instructions on a few slots.
type assembly struct {
	code  []machineInstr
	slot  []uint8 // by register, after all instructions, of those that are reduced
	slots int
}

type machineInstr struct {
	op           int
	dst, x, y, z uint8
	a            float64
	at           int
}

// Numbers of instructions: those of functions follow.
const (
	loadOp = iota
	constOp
	storeOp
	selectOp
	unaryOp  = 8
	binaryOp = unaryOp + int(graph.NumUnaryFn)
)

// assemble gives registers slots: an operand is loaded where it is first used, and a
// slot is free after its last use.
func assemble(f *plan.Fused) assembly {
	a := assembly{slot: make([]uint8, f.Registers())}
	last := slices.Repeat([]int{-1}, f.Registers())
	for i, c := range f.Code {
		for _, r := range reads(c) {
			last[r] = i
		}
	}
	for _, r := range f.Stores {
		last[r] = len(f.Code)
	}
	for _, s := range f.Sums {
		last[s.Reg] = len(f.Code)
	}
	var free []uint8
	has := make([]bool, f.Registers())
	take := func(r int) uint8 {
		if len(free) == 0 {
			free = append(free, uint8(min(a.slots, 255)))
			a.slots++
		}
		a.slot[r], free, has[r] = free[len(free)-1], free[:len(free)-1], true
		return a.slot[r]
	}
	use := func(r int) uint8 {
		first := len(f.Loads)
		switch {
		case has[r]:
		case r < first:
			a.code = append(a.code, machineInstr{op: loadOp, dst: take(r), at: r})
		default:
			a.code = append(a.code, machineInstr{op: constOp, dst: take(r), a: constant(f.DType, f.Consts[r-first])})
		}
		return a.slot[r]
	}
	for i, c := range f.Code {
		var in machineInstr
		regs := reads(c)
		for k, r := range regs {
			*[]*uint8{&in.x, &in.y, &in.z}[k] = use(r)
		}
		switch op := c.Op.(type) {
		case graph.Unary:
			in.op, in.a = unaryOp+int(op.Fn), op.A()
		case graph.Binary:
			in.op = binaryOp + int(op.Fn)
		default:
			in.op = selectOp
		}
		slices.Sort(regs)
		for _, r := range slices.Compact(regs) {
			if last[r] == i {
				free = append(free, a.slot[r])
			}
		}
		in.dst = take(f.Registers() - len(f.Code) + i)
		if last[f.Registers()-len(f.Code)+i] < 0 { // nobody reads it
			free = append(free, in.dst)
		}
		a.code = append(a.code, in)
	}
	for _, s := range f.Sums {
		use(s.Reg)
	}
	for _, r := range f.Stores { // all is loaded before anything is stored
		use(r)
	}
	for k, r := range f.Stores {
		a.code = append(a.code, machineInstr{op: storeOp, x: a.slot[r], at: len(f.Loads) + k})
	}
	return a
}

// reads are the registers that an instruction reads.
func reads(c plan.Instr) []int {
	switch c.Op.(type) {
	case graph.Unary:
		return []int{c.X}
	case graph.Binary:
		return []int{c.X, c.Y}
	}
	return []int{c.X, c.Y, c.Z}
}

// batchKernel is the kernel of all batches.
func batchKernel(grid int) (Launch, error) {
	s := &source{}
	s.helper(batchHeader)
	for _, reg := range []string{"float", "double", "i64"} {
		s.helper(evaluator(reg))
	}
	s.declare("const u8 *", "program")
	s.add(8, field{})
	var put [2]string
	for i, d := range finishTypes {
		k, x, reg := 0, "s", "double"
		if i >= 3 {
			k, x, reg = 1, "l", "i64"
		}
		put[k] += fmt.Sprintf("\n\t\t\t\tcase %d: ((%s *)m->out)[r] = %s; break;", i, ctype(d), stored(d, reg, x))
	}
	s.line(batchText, Block, batchSlots, put[0], put[1])
	return s.launch("batch", grid)
}

// batchText is the body: first the reductions, a team of threads for each result, then
// what is stored, since that may take the place of what is read.
const batchText = `DEVICE double batchValue(const u8 *program, const struct bstep *s, i64 p, double *regs, int slot, i64 *l) {
	if (s->kind == 0) {
		eval_float(program, s, p, (float *)regs + TID, 0);
		return ((float *)regs)[slot * %[1]d + TID];
	}
	if (s->kind == 1) {
		eval_double(program, s, p, regs + TID, 0);
		return regs[slot * %[1]d + TID];
	}
	eval_i64(program, s, p, (i64 *)regs + TID, 0);
	*l = ((i64 *)regs)[slot * %[1]d + TID];
	return 0;
}

KERNEL_SYNC(NAME, %[1]d, struct NAME_args) {
	SHARED(double, regs, [%[2]d * %[1]d]);
	SHARED(double, sum, [%[1]d]);
	SHARED(double, square, [%[1]d]);
	const struct bblock b = ((const struct bblock *)a.program)[BID];
	for (int k = 0; k < b.count; k++) {
		const struct bstep *st = (const struct bstep *)(a.program + b.steps) + k;
		if (k > 0)
			SYNC();
		for (int n = 0; n < st->nsums; n++) {
			const struct bsum *m = (const struct bsum *)(a.program + st->sums) + n;
			const int T = m->threads, lane = TID & (T - 1), ints = st->kind == 2, greatest = m->how == 2;
			for (i64 first = 0; first < m->results; first += %[1]d / T) {
				const i64 r = first + TID / T, base = batchOffset(r, m->nkept, m->kept, m->keptStride);
				const i64 terms = r < m->results ? m->terms : 0;
				double s = greatest ? BITSF64(0xfff0000000000000ULL) : 0, q = 0;
				i64 l = greatest ? (i64)((u64)1 << 63) : 0;
				for (i64 i = lane; i < terms; i += T) {
					i64 y = 0;
					const double x = batchValue(a.program, st, base + batchOffset(i, m->nover, m->over, m->overStride), regs, m->slot, &y);
					s = greatest ? maxD(s, x) : s + x;
					q += x * x;
					l = greatest ? maxL(l, y) : (i64)((u64)l + (u64)y);
				}
				SYNC();
				sum[TID] = ints ? BITSF64((u64)l) : s;
				square[TID] = q;
				for (int d = T / 2; d > 0; d /= 2) {
					SYNC();
					if (lane >= d)
						continue;
					const i64 y = (i64)F64BITS(sum[TID + d]);
					s = greatest ? maxD(s, sum[TID + d]) : s + sum[TID + d];
					q += square[TID + d];
					l = greatest ? maxL(l, y) : (i64)((u64)l + (u64)y);
					sum[TID] = ints ? BITSF64((u64)l) : s;
					square[TID] = q;
				}
				if (lane > 0 || r >= m->results)
					continue;
				if (m->how == 1)
					s = maxD(0, q - s * s / m->count);
				switch (m->type) {%[3]s%[4]s
				}
			}
		}
		if (st->nsums > 0)
			SYNC();
		for (i64 p = (i64)b.part * %[1]d + TID; p < st->points; p += (i64)b.parts * %[1]d) {
			if (st->kind == 0)
				eval_float(a.program, st, p, (float *)regs + TID, 1);
			else if (st->kind == 1)
				eval_double(a.program, st, p, regs + TID, 1);
			else
				eval_i64(a.program, st, p, (i64 *)regs + TID, 1);
		}
	}
}`

// evaluator is the function that runs a step's instructions for one point, on registers
// of one type.
func evaluator(reg string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`FUNCTION void eval_%s(const u8 *program, const struct bstep *s, i64 p, %[1]s *r, int store) {
	const struct binstr *code = (const struct binstr *)(program + s->code);
	const struct boperand *operands = (const struct boperand *)(program + s->operands);
	for (int k = 0; k < s->ncode; k++) {
		const struct binstr c = code[k];
		const struct boperand *o = operands + c.at;
		const %[1]s x = r[c.x * %[2]d], y = r[c.y * %[2]d], z = r[c.z * %[2]d], a = (%[1]s)c.a;
		%[1]s v = 0;
		switch (c.op) {
		case %[3]d: {
			const i64 at = o->rank > 0 ? batchOffset(p, o->rank, o->dims, o->strides) : p;
			switch (o->type) {`, reg, Block, loadOp)
	for i, d := range finishTypes {
		line("\t\t\tcase %d: v = %s; break;", i, loaded(d, reg, fmt.Sprintf("((const %s *)o->p)[at]", ctype(d))))
	}
	line("\t\t\t}\n\t\t\tbreak;\n\t\t}\n\t\tcase %d:\n\t\t\tif (!store)\n\t\t\t\tcontinue;\n\t\t\tswitch (o->type) {", storeOp)
	for i, d := range finishTypes {
		line("\t\t\tcase %d: ((%s *)o->p)[p] = %s; break;", i, ctype(d), stored(d, reg, "x"))
	}
	line("\t\t\t}\n\t\t\tcontinue;\n\t\tcase %d: v = a; break;\n\t\tcase %d: v = %s; break;", constOp, selectOp, expression(graph.Select{}, reg, "x", "y", "z", "a"))
	if reg != "i64" {
		for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
			line("\t\tcase %d: v = %s; break;", unaryOp+int(fn), unaryText(fn, reg, "x", "a"))
		}
	}
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		if reg != "i64" || fn != graph.Div {
			line("\t\tcase %d: v = %s; break;", binaryOp+int(fn), binaryText(fn, reg, "x", "y"))
		}
	}
	line("\t\t}")
	switch reg {
	case "float":
		line("\t\tif (s->round == 1)\n\t\t\tv = %s;", rounded(graph.BF16, "v"))
	case "i64":
		line("\t\tif (s->round == 2)\n\t\t\tv = %s;\n\t\tif (s->round == 3)\n\t\t\tv = %s;", rounded(graph.I32, "v"), rounded(graph.U8, "v"))
	}
	line("\t\tr[c.dst * %d] = v;\n\t}\n}", Block)
	return b.String()
}
